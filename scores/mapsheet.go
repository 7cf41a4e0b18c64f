package scores

// A MapSheet describes drawings of the feature maps f of one sample x under a transformation T. The
// drawings are in a PNG file, named as the JSON file of the MapSheet apart from the extension. It
// has a row of four small images, the tiles, for each channel in Layers: f(x), f(T(x)), tau f(x)
// and the difference f(T(x)) - tau f(x), where tau f(x) is T applied to the maps f(x). If HasInput
// is set, the first row has x and T(x).
type MapSheet struct {
	Model     string     `json:"model"`
	Data      string     `json:"data"`
	Transform string     `json:"transform"`
	Parameter string     `json:"parameter"` // "" for a transformation without a list of values
	Measure   string     `json:"measure"`   // measure whose settings the maps were drawn with
	Sample    int        `json:"sample"`    // index in the data set
	Name      string     `json:"name"`      // of the sample
	HasInput  bool       `json:"has_input"`
	Layers    []MapLayer `json:"layers"`
	Tile      SheetTile  `json:"tile"` // size of the tiles, and distances between them, in pixels
}

// A MapLayer describes the maps of a layer in the drawing. Depth is the number of nodes on the
// longest path from the input to the layer.
type MapLayer struct {
	Layer    string       `json:"layer"`
	Depth    int          `json:"depth"`
	Height   int          `json:"height"` // of the maps, in positions; tiles are enlarged or reduced
	Width    int          `json:"width"`
	Channels []MapChannel `json:"channels"` // those that vary most over positions
}

// A MapChannel describes the maps of a channel.
type MapChannel struct {
	Channel int `json:"channel"` // from 0
	// Low and High are the values that are drawn black and white. Differences are drawn from -(High
	// - Low), blue, to High - Low, orange.
	Low  float32 `json:"low"`
	High float32 `json:"high"`
	// Error is the norm of f(T(x)) - tau f(x) divided by the norm of tau f(x), both of this
	// channel.
	Error float32 `json:"error"`
}
