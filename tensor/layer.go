package tensor

// Axes names the axes of a tensor, one letter each: N batch, C channel, H and W space, T time or
// token, "?" unknown. Examples: "NCHW", "NHWC" (ConvNeXt, Swin), "NTC" (tokens), "NCT" (1-D feature
// maps), "NC".
//
// N means that each position of the axis is one sample. If a graph merges the batch with another
// axis, such as the heads or windows of attention, the axis is "?": such a tensor of a Swin
// transformer is "?TC". A letter may occur twice: attention weights are "NCTT", channels that are
// split into heads are "NTCC". Axes are empty if the rank is unknown.
type Axes string

// A Layer is a tensor of a graph that depends on the model's input and can be read as a
// representation.
type Layer struct {
	Name string // of the tensor
	Op   string // operator that produces it, for instance "Conv"
	Node string // name of the node that produces it; may be empty
	// Depth is the number of nodes on the longest path from an input to the tensor. Nodes that
	// depend only on shapes do not count.
	Depth int
	Shape []int // of one sample: without the batch axis; nil until it is known
	Axes  Axes  // of the whole tensor, with the batch axis
	// Tokens describes the order of the tokens of a layer whose Axes are NTC; nil: unknown.
	Tokens *Tokens
}

// Tokens describes the order of tokens: first those without a position in the image (class,
// distillation and register tokens), then those of a grid of patches, row by row.
type Tokens struct {
	Prefix        int // number of tokens without a position in the image
	Height, Width int // of the grid
}
