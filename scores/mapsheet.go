package scores

// A MapSheet describes a PNG file of the same name: feature maps f of a sample x under T. A channel
// in Layers has a row of tiles f(x), f(T(x)), tau f(x), which is T on maps, and f(T(x)) - tau f(x).
// With HasInput, the first row is x and T(x).
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

// A MapLayer describes the maps of a layer.
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
	// Error is |f(T(x)) - tau f(x)| / |tau f(x)| of this channel.
	Error float32 `json:"error"`
}
