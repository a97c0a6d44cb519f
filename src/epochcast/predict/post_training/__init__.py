"""Generation and post-training: answers made of forecasts of generation and of training steps."""
