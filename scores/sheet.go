package scores

// A Sheet describes a contact sheet: a row for each sample, untransformed, then with each value of
// the parameter. All images have the same size, with gaps between and around them.
type Sheet struct {
	Data       string   `json:"data"`
	Transform  string   `json:"transform"`
	Parameters []string `json:"parameters"` // "" for a transformation without a list of values
	Samples    []int    `json:"samples"`    // indices in the data set, one for each row
	Gap        int      `json:"gap"`        // pixels
}
