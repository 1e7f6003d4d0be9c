"""The kernels of the book, each with its call, its float64 reference and its cases."""
