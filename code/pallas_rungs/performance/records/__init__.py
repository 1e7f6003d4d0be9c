"""Records of comparisons that take too long for a build: `validation` reads and checks them."""
