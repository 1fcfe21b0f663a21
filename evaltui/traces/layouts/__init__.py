"""The layouts that producers give their spans, one module each: which attribute means what."""
