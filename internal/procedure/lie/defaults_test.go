package lie

// Defaults returns the default settings.
func Defaults() Settings {
	return Settings{Generators: []string{"translate-x", "translate-y", "rotate", "scale", "shear-x"}, Images: 100, Contributions: true, Slopes: Central, Batch: 8}
}
