package report

import (
	"encoding/json"
	"fmt"
	"image/color"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
)

// A Colour is a colour in hexadecimal digits, "#rrggbb".
type Colour string

// RGBA returns the colour as an opaque color.RGBA. It panics if the colour has another form.
func (c Colour) RGBA() color.RGBA {
	out := color.RGBA{A: 255}
	if _, err := fmt.Sscanf(string(c), "#%02x%02x%02x", &out.R, &out.G, &out.B); err != nil {
		panic(fmt.Sprintf("report: bad colour %q", string(c)))
	}
	return out
}

// SeriesColours are the colours of series on a light and on a dark background: six of Okabe and
// Ito, shifted for contrast, and two more. With more series than colours, the report's page draws
// all but the one that the reader chooses in grey. Figures repeat the colours with other markers
// and dashes, up to twelve series; of more, they draw all but one in grey.
var SeriesColours = []struct{ Light, Dark Colour }{
	{"#0072b2", "#56b4e9"}, {"#c65300", "#f0935a"}, {"#00805d", "#35c596"},
	{"#a8447f", "#e58fc0"}, {"#8f6400", "#e3c63c"}, {"#4d5a94", "#a9b3f2"},
	{"#b3202c", "#ff8f8f"}, {"#56700a", "#bcd35f"},
}

// markers and dashes distinguish series without colour. The markers have the names of Vega's
// symbols; dashes are the lengths of line and gap in turn, in pixels of a page.
var (
	markers = []string{"circle", "square", "triangle-up", "diamond", "triangle-down", "cross"}
	dashes  = [][]float64{{1, 0}, {6, 3}, {2, 2}, {8, 3, 2, 3}}
)

// A Look is how a series is drawn: an index of SeriesColours, a marker and dashes.
type Look struct {
	Colour int       `json:"colour"`
	Marker string    `json:"marker"`
	Dashes []float64 `json:"dashes"`
}

// LookOf returns the look of series i, from 0. Series that repeat a colour have other markers and
// dashes.
func LookOf(i int) Look {
	round := i / len(SeriesColours)
	return Look{i % len(SeriesColours), markers[(i+round)%len(markers)], dashes[round%len(dashes)]}
}

// Looks returns all different looks, in order.
func Looks() []Look {
	out := make([]Look, len(SeriesColours)*len(dashes))
	for i := range out {
		out[i] = LookOf(i)
	}
	return out
}

// The colours of a heat map, from low to high values: viridis (Smith and van der Walt 2015), and
// blue to orange for values of both signs. Colour-blind readers can tell the colours of both apart.
// In greyscale viridis shows the value, and blue to orange its magnitude without the sign.
var (
	sequential = []Colour{"#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"}
	diverging  = []Colour{"#134b85", "#2f78b3", "#5da2cb", "#9dcae1", "#d2e5ef", "#f2f0eb", "#fce0ba", "#fbbf74", "#e8932f", "#c5690d", "#994a07"}
)

// A ColourScale maps values to the colours of a heat map.
type ColourScale struct {
	Low, High float64
	Unit      bool // the statistic's range is [0, 1], or ends at 1 and no value is negative
	Signed    bool // Low is -High, and colours diverge from 0
}

// NewColourScale returns the scale of the values of a statistic with the given range. It is [0, 1],
// widened to all values, if Unit is set. Otherwise it is a symmetric interval if there are values
// of both signs, and the interval of the values if not. If they are all equal, it extends 0.5 below
// and above. Without finite values it is [0, 1].
func NewColourScale(values []float64, of measure.Range) ColourScale {
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !finite(v) })
	if len(values) == 0 {
		return ColourScale{High: 1, Unit: of == measure.ZeroToOne}
	}
	low, high := slices.Min(values), slices.Max(values)
	switch most := max(-low, high); {
	case of == measure.ZeroToOne || of.High == 1 && low >= 0: // bias correction may give values below 0
		return ColourScale{Low: min(0, low), High: max(1, high), Unit: true}
	case low < 0 && high > 0:
		return ColourScale{Low: -most, High: most, Signed: true}
	case low == high:
		return ColourScale{Low: low - 0.5, High: high + 0.5}
	}
	return ColourScale{Low: low, High: high}
}

func (s ColourScale) colours() []Colour {
	if s.Signed {
		return diverging
	}
	return sequential
}

// At returns the colour of a value, interpolated linearly. It is grey if the value is not finite.
func (s ColourScale) At(v float64) color.Color {
	if !finite(v) {
		return color.Gray{0xe4}
	}
	colours := s.colours()
	at := min(1, max(0, (v-s.Low)/(s.High-s.Low))) * float64(len(colours)-1)
	i := min(int(at), len(colours)-2)
	a, b, t := colours[i].RGBA(), colours[i+1].RGBA(), at-float64(i)
	mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + t*(float64(y)-float64(x)))) }
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// Ink returns the colour of text on a background: nearly black, or white. The weights of the
// luminance, from 0 to 1, are those of ITU-R BT.601.
func Ink(background color.Color) color.Gray {
	r, g, b, _ := background.RGBA()
	if luminance := (0.299*float64(r) + 0.587*float64(g) + 0.114*float64(b)) / 0xffff; luminance < 0.45 {
		return color.Gray{0xff}
	}
	return color.Gray{0x11}
}

// MarshalJSON implements json.Marshaler: Unit and Signed, with the values, colours and text colours
// of equally spaced stops from Low to High.
func (s ColourScale) MarshalJSON() ([]byte, error) {
	colours := s.colours()
	stops, inks := make([]float64, len(colours)), make([]Colour, len(colours))
	for i, c := range colours {
		stops[i] = s.Low + (s.High-s.Low)*float64(i)/float64(len(colours)-1)
		y := Ink(c.RGBA()).Y
		inks[i] = Colour(fmt.Sprintf("#%02x%02x%02x", y, y, y))
	}
	return json.Marshal(struct {
		Unit    bool      `json:"unit"`
		Signed  bool      `json:"signed"`
		Stops   []float64 `json:"stops"`
		Colours []Colour  `json:"colours"`
		Inks    []Colour  `json:"inks"`
	}{s.Unit, s.Signed, stops, colours, inks})
}
