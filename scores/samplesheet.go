package scores

// A SampleSheet lists the samples that a transformation changes most and least, with predictions
// and counts for each class. An image file of the same name has a row for each: clean, then under
// each value of the parameter.
type SampleSheet struct {
	Data       string   `json:"data"`
	Transform  string   `json:"transform"`
	Parameters []string `json:"parameters"` // values of the parameter; "" for a transformation without a list of them
	Of         int      `json:"of"`         // number of samples with values, from which Samples were chosen
	// Measure and Statistic name SheetView.Value: effective invariance for classes, else the first
	// that a run has of Jensen-Shannon divergence, agreement of class maps or boxes, cosine at the
	// last layer, and relative error of maps.
	Measure   string        `json:"measure"`
	Statistic string        `json:"statistic"`
	Title     string        `json:"title"`   // the statistic's name for readers, such as "effective invariance"
	Lower     bool          `json:"lower"`   // a lower value means a larger change
	Classes   []string      `json:"classes"` // class names; labels and predictions are indices into this list
	Samples   []SheetSample `json:"samples"` // the rows of the image
	Models    []SheetModel  `json:"models"`
	Partings  []Parting     `json:"partings,omitempty"`
	// Projections of some layers are two-dimensional, for the samples in Projected.
	Projected   []SheetSample `json:"projected,omitempty"`
	Projections []Projection  `json:"projections,omitempty"`
	Tile        *SheetTile    `json:"tile,omitempty"`  // nil if there is no image
	Sound       *SheetSound   `json:"sound,omitempty"` // nil if there is no sound
}

// A Projection has positions in the plane of the first two principal components of a layer's pooled
// activations on x and T(x) together.
type Projection struct {
	Model string           `json:"model"`
	Layer string           `json:"layer"`
	Depth int              `json:"depth"`
	Views []ProjectionView `json:"views"` // under each value of the parameter
}

// A ProjectionView has the positions of each x (Clean) and T(x) (Moved), for a parameter value.
type ProjectionView struct {
	Clean [][2]float32 `json:"clean"`
	Moved [][2]float32 `json:"moved"`
}

// A SheetTile is the size of an image on a sheet, and the offsets to the next one, in pixels.
type SheetTile struct {
	Width  int `json:"width"`
	Height int `json:"height"`
	Right  int `json:"right"`
	Down   int `json:"down"`
}

// A SheetSound says where the clips of samples are in the recording of a sheet. Each sample of Lines,
// which are indices into Samples, has a clip as it is, and then one under each value of the
// parameter.
type SheetSound struct {
	Rate   int   `json:"rate"`   // values per second
	Length int   `json:"length"` // values of a clip
	Lines  []int `json:"lines"`
}

// A SheetSample is a sample of a sheet.
type SheetSample struct {
	Index int    `json:"index"` // in the data set
	Name  string `json:"name"`
	Label int    `json:"label"` // class; -1 if it is unknown
}

// A SheetModel holds a model's predictions and counts over all samples that have values; Most,
// Least and Fails index Samples.
type SheetModel struct {
	Model string `json:"model"`
	// Clean is the predicted class of each clean sample, Confidence its probability; nil without
	// predictions.
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
