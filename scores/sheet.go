package scores

// A Sheet describes an image that is a contact sheet: a line for each sample, which has the sample
// as it is and then transformed with each value of the parameter. All images on it have the same
// size, with gaps between and around them.
type Sheet struct {
	Data       string   `json:"data"`
	Transform  string   `json:"transform"`
	Parameters []string `json:"parameters"` // "" for a transformation without a list of values
	Samples    []int    `json:"samples"`    // indices in the data set, a line each
	Gap        int      `json:"gap"`        // pixels
}
