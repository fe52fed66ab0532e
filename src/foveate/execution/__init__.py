"""Long work: folders of finished fits that survive interruption, and compiled functions kept between runs."""
