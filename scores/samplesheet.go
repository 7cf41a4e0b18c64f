package scores

// A SampleSheet describes what a transformation of the input does to single samples: those that it
// changes most and least, with the predictions of each model, and counts for each class. It is
// stored as JSON; an image file of the same name, the sheet, has a row for each sample: the clean
// sample, then the sample under each value of the transformation's parameter.
type SampleSheet struct {
	Data       string   `json:"data"`
	Transform  string   `json:"transform"`
	Parameters []string `json:"parameters"` // values of the parameter; "" for a transformation without a list of them
	Of         int      `json:"of"`         // number of samples with values, from which Samples were chosen
	// Measure and Statistic name the values of samples, SheetView.Value: effective invariance (the
	// geometric mean of the probabilities of the predicted class on x and T(x), or 0 if the classes
	// differ) if models predict classes, else the first of these that a run has: the Jensen-Shannon
	// divergence, the agreement of class maps or of boxes, the cosine at the last layer, and the
	// relative error of maps of values. Each compares the results on x and on T(x).
	Measure   string        `json:"measure"`
	Statistic string        `json:"statistic"`
	Title     string        `json:"title"`   // the statistic's name for readers, such as "effective invariance"
	Lower     bool          `json:"lower"`   // a lower value means a larger change
	Classes   []string      `json:"classes"` // class names; labels and predictions are indices into this list
	Samples   []SheetSample `json:"samples"` // the rows of the image
	Models    []SheetModel  `json:"models"`
	Partings  []Parting     `json:"partings,omitempty"`
	// Projections hold the two-dimensional projections of some layers, for the samples in
	// Projected.
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

// A ProjectionView has the positions of each sample x (Clean) and of T(x) (Moved), for a value of
// the transformation's parameter.
type ProjectionView struct {
	Clean [][2]float32 `json:"clean"`
	Moved [][2]float32 `json:"moved"`
}

// A SheetTile is the size of an image on a sheet, and the distances from its left and top edges to
// those of the next image to the right and below, in pixels.
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

// A SheetModel holds the predictions of a model for the samples, and counts over all samples that
// have values. Most, Least and Fails hold indices into Samples.
type SheetModel struct {
	Model string `json:"model"`
	// Clean is the class that the model predicts for each clean sample, and Confidence the
	// probability of that class. Both are nil if the values are not of predictions.
	Clean      []int       `json:"clean,omitempty"`
	Confidence []float32   `json:"confidence,omitempty"`
	Views      []SheetView `json:"views"`               // under each value of the parameter
	Most       []int       `json:"most"`                // samples that change most, averaged over Views
	Least      []int       `json:"least"`               // samples that change least
	Fails      []int       `json:"fails,omitempty"`     // samples that are classified correctly only when clean
	Right      int         `json:"right"`               // number of clean samples, of all with values, that are classified correctly
	Labelled   int         `json:"labelled"`            // number of samples with values and a label
	ByClass    []ByClass   `json:"by_class"`            // of the samples with a label
	Confusion  [][3]int    `json:"confusion,omitempty"` // label, predicted class, number of clean samples
}

// A SheetView holds the predictions of a model for the samples under a value of the parameter.
type SheetView struct {
	Moved      []int     `json:"moved,omitempty"`      // predicted classes of the transformed samples
	Confidence []float32 `json:"confidence,omitempty"` // probabilities of these classes
	Value      []float32 `json:"value"`                // of the statistic, for each of Samples
	// The following are over all samples that have values.
	Mean      float64   `json:"mean"`    // of the values
	Changed   int       `json:"changed"` // number of samples whose prediction changes
	Failed    int       `json:"failed"`  // number of samples that are classified correctly only when clean
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

// A Parting lists the transformed samples that model A classifies correctly and model B does not.
type Parting struct {
	A       int   `json:"a"`       // index into Models
	B       int   `json:"b"`       // index into Models
	Counts  []int `json:"counts"`  // number of such samples under each value of the parameter
	Samples []int `json:"samples"` // indices into Samples of those on the sheet
}
