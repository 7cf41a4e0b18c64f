package probe

// InformativenessDefaults returns the paper's settings.
func InformativenessDefaults() InformativenessSettings {
	return InformativenessSettings{Training: defaultTraining(), Representation: Representation{Pool: "mean"}}
}

// InvarianceDefaults returns the settings of a study that sets none: ten points over a range.
func InvarianceDefaults() InvarianceSettings {
	return InvarianceSettings{Parts: 10, Representation: Representation{Pool: "mean"}}
}

// EquivarianceDefaults returns the paper's settings.
func EquivarianceDefaults() EquivarianceSettings {
	return EquivarianceSettings{Training: defaultTraining(), Representation: Representation{Pool: "mean"}}
}

// defaultTraining returns the paper's settings.
func defaultTraining() Training {
	return Training{Probe: []string{SLP, MLP}, Rate: 1e-3, Decay: 1e-3, Batch: 32, Epochs: 100, Patience: 10, Seeds: 3, Split: []float64{0.8, 0.1, 0.1}}
}
