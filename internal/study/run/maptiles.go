package run

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"

	"golang.org/x/image/draw"

	"github.com/noether-ml/noether/internal/contactsheet"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

const tileSide = 64 // pixels of the longer side of a tile

// draw returns four tiles (small images) of a channel: f(x), f(T(x)) and tau f(x) in shades of
// grey, and the difference f(T(x)) - tau f(x) in blue and orange. Here f(x) are the maps of sample
// x, T is the transformation, and tau its action on maps. Positions p (a row and column) where tau
// f(x) is not defined, with inside[p] false, are transparent in the last two. MapChannel.Error is
// the norm of the difference divided by that of tau f(x); it is 0 if the difference is 0, and else
// 1 if tau f(x) is 0.
func (z *layerMaps) draw(channel int) (scores.MapChannel, []image.Image) {
	h, w, _ := z.Size()
	low, high := math.Inf(1), math.Inf(-1)
	var difference, norm float64
	for p := range z.Positions() {
		// i counts from Base, the index at which the maps begin in the activations.
		i := z.index(channel, p)
		x, y, t := float64(z.clean[z.Base+i]), float64(z.transformed[z.Base+i]), float64(z.expected[i]) // f(x), f(T(x)), tau f(x)
		low, high = min(low, x, y), max(high, x, y)
		if z.inside[p] {
			difference, norm = difference+(y-t)*(y-t), norm+t*t
		}
	}
	info := scores.MapChannel{Channel: channel, Low: float32(low), High: float32(high)}
	switch {
	case difference == 0:
	case norm == 0:
		info.Error = 1
	default:
		info.Error = float32(math.Sqrt(difference / norm))
	}
	span := max(high-low, math.SmallestNonzeroFloat32)
	grey := func(v float32) color.NRGBA {
		level := uint8(math.Round(255 * min(1, max(0, (float64(v)-low)/span))))
		return color.NRGBA{level, level, level, 255}
	}
	var tiles [4]*image.NRGBA
	for i := range tiles {
		tiles[i] = image.NewNRGBA(image.Rect(0, 0, w, h))
	}
	for p := range z.Positions() {
		i := z.index(channel, p)
		x, y, t := z.clean[z.Base+i], z.transformed[z.Base+i], z.expected[i]
		tiles[0].SetNRGBA(p%w, p/w, grey(x))
		tiles[1].SetNRGBA(p%w, p/w, grey(y))
		if z.inside[p] {
			tiles[2].SetNRGBA(p%w, p/w, grey(t))
			tiles[3].SetNRGBA(p%w, p/w, signedColour(float64(y-t)/span))
		}
	}
	return info, []image.Image{tiles[0], tiles[1], tiles[2], tiles[3]}
}

// signedColour returns blue for -1, nearly white for 0 and orange for 1, with colours between them.
func signedColour(v float64) color.NRGBA {
	end, middle := [3]float64{0x99, 0x4a, 0x07}, [3]float64{0xf2, 0xf0, 0xeb} // red, green, blue
	if v < 0 {
		end = [3]float64{0x13, 0x4b, 0x85}
	}
	var mixed [3]uint8
	for i := range mixed {
		mixed[i] = uint8(math.Round(middle[i] + min(1, math.Abs(v))*(end[i]-middle[i])))
	}
	return color.NRGBA{mixed[0], mixed[1], mixed[2], 255}
}

// toImage converts an image of c x h x w with values in [0, 1].
func toImage(t tensor.Tensor) image.Image {
	out := contactsheet.Blank(t.Shape[2], t.Shape[1])
	contactsheet.Paint(out, 0, 0, 1, t)
	return out
}

// encodeTiles returns rows of tiles as a PNG, and the size of a tile: the aspect ratio of h x w
// with a longer side of tileSide. Smaller images are enlarged pixel by pixel, larger ones reduced.
func encodeTiles(rows [][]image.Image, h, w int) ([]byte, scores.SheetTile, error) {
	const gap = 4 // pixels between tiles
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	t := scores.SheetTile{Width: max(1, tileSide*w/max(h, w)), Height: max(1, tileSide*h/max(h, w))}
	t.Right, t.Down = t.Width+gap, t.Height+gap
	out := image.NewNRGBA(image.Rect(0, 0, columns*t.Right, len(rows)*t.Down))
	for i, row := range rows {
		for k, tile := range row {
			var scaler draw.Scaler = draw.NearestNeighbor
			if tile.Bounds().Dx() > t.Width || tile.Bounds().Dy() > t.Height {
				scaler = draw.BiLinear
			}
			scaler.Scale(out, image.Rect(k*t.Right, i*t.Down, k*t.Right+t.Width, i*t.Down+t.Height), tile, tile.Bounds(), draw.Src, nil)
		}
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err := encoder.Encode(&b, out)
	return b.Bytes(), t, err
}
