package probe

// informativenessDefaults returns the paper's settings.
func informativenessDefaults() InformativenessSettings {
	return InformativenessSettings{Training: defaultTraining(), Representation: Representation{Pool: "mean"}}
}

// invarianceDefaults returns the defaults of a study: ten points over a range.
func invarianceDefaults() InvarianceSettings {
	return InvarianceSettings{Parts: 10, Representation: Representation{Pool: "mean"}}
}

// equivarianceDefaults returns the paper's settings.
func equivarianceDefaults() EquivarianceSettings {
	return EquivarianceSettings{Training: defaultTraining(), Representation: Representation{Pool: "mean"}}
}

// defaultTraining returns the paper's settings.
func defaultTraining() Training {
	return Training{Probe: []string{SLP, MLP}, Rate: 1e-3, Decay: 1e-3, Batch: 32, Epochs: 100, Patience: 10, Seeds: 3, Split: []float64{0.8, 0.1, 0.1}}
}
