package robust

// Defaults returns the settings of Table 2 of Nanda et al. 2022: l2, radius 1.
func Defaults() Settings {
	return Settings{Images: 1000, Norm: "l2", Radius: 1, Steps: 20, Random: true, Restarts: 1}
}
