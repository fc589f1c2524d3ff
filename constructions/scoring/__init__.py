"""Do methods of interpretability find what a model is known to compute? Problems, twins, methods and their scores."""
