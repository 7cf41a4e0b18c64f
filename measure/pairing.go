package measure

// The ways to pair the layers of two models.
const (
	PairPenultimate = "penultimate" // the input of the last matrix product of each model
	PairSame        = "same"        // by name if both models have the same names, else by order
	PairGrid        = "grid"        // every layer with every layer
	PairMatched     = "matched"     // of two forms of one model: by name, module of PyTorch, or order
)
