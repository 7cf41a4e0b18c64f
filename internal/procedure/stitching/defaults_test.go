package stitching

// Defaults returns the default settings.
func Defaults() Settings {
	return Settings{Images: 2000, Train: 0.5, Start: leastSquares, Epochs: 10, Rate: 0.001, Batch: 32}
}
