package scores

// A MapSheet describes feature maps of one sample: those of x, those of T(x), T applied to those of x,
// and the difference of the second and the third. An image with the same name has a line of these four tiles
// for each channel in Layers, after a line with x and T(x) if HasInput is set.
type MapSheet struct {
	Model     string     `json:"model"`
	Data      string     `json:"data"`
	Transform string     `json:"transform"`
	Parameter string     `json:"parameter"` // "" without a list of values
	Measure   string     `json:"measure"`   // that the maps belong to
	Sample    int        `json:"sample"`    // index in the data set
	Name      string     `json:"name"`      // of the sample
	HasInput  bool       `json:"has_input"`
	Layers    []MapLayer `json:"layers"`
	Tile      SheetTile  `json:"tile"`
}

// A MapLayer describes the maps of a layer on a sheet.
type MapLayer struct {
	Layer    string       `json:"layer"`
	Depth    int          `json:"depth"`
	Height   int          `json:"height"` // of the maps; tiles are enlarged or reduced
	Width    int          `json:"width"`
	Channels []MapChannel `json:"channels"` // those that vary most over positions
}

// A MapChannel describes the maps of a channel.
type MapChannel struct {
	Channel int `json:"channel"` // from 0
	// Low and High are the values that are drawn black and white. Differences are drawn from -(High - Low),
	// blue, to High - Low, orange.
	Low  float32 `json:"low"`
	High float32 `json:"high"`
	// Error is the norm of the difference divided by that of T of f(x), both of this channel.
	Error float32 `json:"error"`
}
