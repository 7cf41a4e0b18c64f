package transform

// A Generator is the derivative of a family T_t by t at t = 0, where T_0 is the identity: a linear
// map of images and feature maps.
type Generator struct {
	Name string
	Doc  string // what the family does, and the unit of t
	// Of a family that moves positions, position p = (x, y) of the result is read from p + t v(p),
	// where x and y are pixels to the right and down from the centre of a map of width w and height
	// h:
	//
	//	v(p) = (a x + b y + c w, d x + e y + f h)
	//
	// so the generator is the directional derivative of the map along v. Nil: it moves no
	// positions.
	Velocity *[6]float64 // a, b, c, d, e, f
	// Colours: image x maps to x minus what stays, which is nothing, the pixel's grey, or the mean
	// grey.
	Invariant Invariant
}

// An Invariant is the part of an image that a change of colour by a factor leaves as it is.
type Invariant int

const (
	Black     Invariant = iota // nothing stays
	PixelGrey                  // the grey of each pixel
	MeanGrey                   // the mean grey of the image
)

// Generators returns those of affine transformations and of colour changes by 1 + t.
func Generators() []Generator {
	moving := func(name, doc string, a, b, c, d, e, f float64) Generator {
		return Generator{Name: name, Doc: doc, Velocity: &[6]float64{a, b, c, d, e, f}}
	}
	return []Generator{
		moving("translate-x", "to the right, t: fraction of the width", 0, 0, -1, 0, 0, 0),
		moving("translate-y", "down, t: fraction of the height", 0, 0, 0, 0, 0, -1),
		moving("rotate", "counter-clockwise about the centre, t: radians", 0, -1, 0, 1, 0, 0),
		moving("scale", "enlarges about the centre by a factor of 1 + t", -1, 0, 0, 0, -1, 0),
		moving("stretch-x", "widens by a factor of 1 + t", -1, 0, 0, 0, 0, 0),
		moving("stretch-y", "heightens by a factor of 1 + t", 0, 0, 0, 0, -1, 0),
		moving("shear-x", "moves the top to the right, t: tangent of the angle", 0, 1, 0, 0, 0, 0),
		moving("shear-y", "moves the left side down, t: tangent of the angle", 0, 0, 0, 1, 0, 0),
		{Name: "brightness", Doc: "multiplies the image by 1 + t"},
		{Name: "contrast", Doc: "multiplies the distance from the image's mean grey by 1 + t", Invariant: MeanGrey},
		{Name: "saturation", Doc: "multiplies the distance from each pixel's grey by 1 + t", Invariant: PixelGrey},
	}
}
