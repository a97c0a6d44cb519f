"""Recording a training from inside: what `ec.track` and the callbacks see, into a file, a store or a server."""
