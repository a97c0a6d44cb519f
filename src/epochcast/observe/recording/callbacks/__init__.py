"""What each framework's callback does; `epochcast.callbacks` is where users find them."""
