package probe

// informativenessDefaults returns the default settings of the measure informativeness in a study,
// the file that says what is measured. It trains probes: small networks that predict a property of
// a sample from its representation, a layer's activation reduced to a vector, here by the mean.
func informativenessDefaults() InformativenessSettings {
	return InformativenessSettings{Training: defaultTraining(), Representation: Representation{Pool: "mean"}}
}

// invarianceDefaults returns the default settings of invariance, with one score for each tenth of
// the range of a transformation's parameter.
func invarianceDefaults() InvarianceSettings {
	return InvarianceSettings{Parts: 10, Representation: Representation{Pool: "mean"}}
}

// equivarianceDefaults returns the default settings of the two equivariance measures.
func equivarianceDefaults() EquivarianceSettings {
	return EquivarianceSettings{Training: defaultTraining(), Representation: Representation{Pool: "mean"}}
}

// defaultTraining returns the default settings for the training of probes. The probes are SLP, a
// single-layer perceptron, and MLP, a multi-layer one.
func defaultTraining() Training {
	return Training{Probe: []string{SLP, MLP}, Rate: 1e-3, Decay: 1e-3, Batch: 32, Epochs: 100, Patience: 10, Seeds: 3, Split: []float64{0.8, 0.1, 0.1}}
}
