"""One measured step given: how far it carries to other batches."""
