"""The abstract domain of the front end: frames, heap, functions, optionals."""
