"""How fast a kernel may be, without a chip: bounds, budgets and estimates."""
