"""Can Mamba Always Enjoy the "Free Lunch"?: COPY, and dynamic programming whose table the model writes itself."""
