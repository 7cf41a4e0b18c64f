package scores

// A SampleSheet describes what a transformation of the input does to single samples: those that it
// changes most and least, with the predictions of each model, and counts for each class. An image
// with the same name shows the samples: a line for each, with the sample as it is and then under
// each value of the parameter.
type SampleSheet struct {
	Data       string   `json:"data"`
	Transform  string   `json:"transform"`
	Parameters []string `json:"parameters"` // "" for a transformation without a list of values
	Of         int      `json:"of"`         // number of samples with values, among which these were chosen
	// Measure and Statistic are what Value holds. It is effective invariance if models predict classes,
	// else a divergence, or else a distance at the last layer.
	Measure   string        `json:"measure"`
	Statistic string        `json:"statistic"`
	Title     string        `json:"title"`   // of the statistic
	Lower     bool          `json:"lower"`   // a lower value means a larger change
	Classes   []string      `json:"classes"` // names of the classes below, which are indices into it
	Samples   []SheetSample `json:"samples"` // the lines
	Models    []SheetModel  `json:"models"`
	Partings  []Parting     `json:"partings,omitempty"`
	// Projections are those of the vectors of some layers, for the samples in Projected.
	Projected   []SheetSample `json:"projected,omitempty"`
	Projections []Projection  `json:"projections,omitempty"`
	Tile        *SheetTile    `json:"tile,omitempty"` // nil if there is no image
}

// A Projection has the positions of samples in the plane of the first two principal components of a
// layer's activations on x and T(x) together, pooled over positions.
type Projection struct {
	Model string           `json:"model"`
	Layer string           `json:"layer"`
	Depth int              `json:"depth"`
	Views []ProjectionView `json:"views"` // under each value of the parameter
}

// A ProjectionView has the positions of each sample under a value of the parameter.
type ProjectionView struct {
	Clean [][2]float32 `json:"clean"`
	Moved [][2]float32 `json:"moved"`
}

// A SheetTile is the size of an image on the sheet and the distance between two images, in pixels.
type SheetTile struct {
	Width  int `json:"width"`
	Height int `json:"height"`
	Right  int `json:"right"`
	Down   int `json:"down"`
}

// A SheetSample is a sample of a sheet.
type SheetSample struct {
	Index int    `json:"index"` // in the data set
	Name  string `json:"name"`
	Label int    `json:"label"` // class; -1 if it is unknown
}

// A SheetModel is what a model makes of the samples. Lists that are not of classes hold positions
// in Samples.
type SheetModel struct {
	Model string `json:"model"`
	// Clean is the class that it predicts for each sample, and Confidence its probability. Both are nil
	// without predictions.
	Clean      []int       `json:"clean,omitempty"`
	Confidence []float32   `json:"confidence,omitempty"`
	Views      []SheetView `json:"views"`               // under each value of the parameter
	Most       []int       `json:"most"`                // samples that change most, on average over the values
	Least      []int       `json:"least"`               // samples that change least
	Fails      []int       `json:"fails,omitempty"`     // samples that are right as they are and wrong transformed
	Right      int         `json:"right"`               // number of samples, of all with values, that are right as they are
	Labelled   int         `json:"labelled"`            // number of samples with values and a label
	ByClass    []ByClass   `json:"by_class"`            // of the samples with a label
	Confusion  [][3]int    `json:"confusion,omitempty"` // label, predicted class, number of samples as they are
}

// A SheetView is what a model makes of the samples under a value of the parameter.
type SheetView struct {
	Moved      []int     `json:"moved,omitempty"` // predicted classes
	Confidence []float32 `json:"confidence,omitempty"`
	Value      []float32 `json:"value"`
	// Of all samples with values:
	Mean      float64   `json:"mean"`    // of the values
	Changed   int       `json:"changed"` // number of samples whose prediction changes
	Failed    int       `json:"failed"`  // number of samples that are right as they are and wrong transformed
	ByClass   []ByClass `json:"by_class"`
	Confusion [][3]int  `json:"confusion,omitempty"` // label, predicted class, number of samples
}

// ByClass summarises the samples of a class.
type ByClass struct {
	Class int     `json:"class"`
	N     int     `json:"n"`
	Right int     `json:"right"` // number of correct predictions
	Mean  float64 `json:"mean"`  // of the values
}

// A Parting is the samples on which two models part: A is right and B is wrong on T(x).
type Parting struct {
	A       int   `json:"a"` // index of the model
	B       int   `json:"b"`
	Counts  []int `json:"counts"`  // under each value of the parameter
	Samples []int `json:"samples"` // some of them
}
