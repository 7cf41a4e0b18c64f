package results

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"

	"golang.org/x/image/draw"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/contactsheet"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// drawSamples returns the encoded image of a sheet with its file name extension, and sets the size
// of its tiles in sheet. Each row is a sample: clean, then under each value of the transformation.
// It returns nil for data that are not images.
func (r *Writer) drawSamples(ctx context.Context, s *sampleValues, sheet *scores.SampleSheet) ([]byte, string, error) {
	first := s.cells[0]
	frame := first.Model.Net.Frame()
	var out *image.NRGBA
	for line, chosen := range sheet.Samples {
		// SourceIndex is the index with which Source.At reads the sample.
		sample, err := first.Data.Source.At(ctx, s.samples[chosen.Index].SourceIndex, frame)
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		if err != nil || !IsImage(sample) {
			return nil, "", nil // for example audio, or a file that has been removed
		}
		tiles := []tensor.Tensor{sample.Input}
		for _, c := range s.cells {
			transformed, err := r.transformedSample(c, sample)
			if err != nil {
				return nil, "", nil // as in writeSheet
			}
			tiles = append(tiles, transformed)
		}
		if out == nil {
			w, h := thumbSize(sample.Input.Shape[2], sample.Input.Shape[1])
			// Each image is extended by blank pixels to whole JPEG blocks: a tile. Right and Down
			// are the steps from one tile to the next, in pixels.
			up := func(n int) int { return (n + sheetBlock - 1) / sheetBlock * sheetBlock }
			sheet.Tile = &scores.SheetTile{Width: w, Height: h, Right: up(w), Down: up(h)}
			out = contactsheet.Blank(len(tiles)*up(w), len(sheet.Samples)*up(h))
		}
		for column, t := range tiles {
			full := contactsheet.Blank(t.Shape[2], t.Shape[1])
			contactsheet.Paint(full, 0, 0, 1, t)
			left, top := column*sheet.Tile.Right, line*sheet.Tile.Down
			draw.CatmullRom.Scale(out, image.Rect(left, top, left+sheet.Tile.Width, top+sheet.Tile.Height), full, full.Bounds(), draw.Src, nil)
		}
	}
	if out == nil {
		return nil, "", nil
	}
	var small boundedBuffer
	if err := sheetEncoder.Encode(&small, out); !errors.Is(err, errTooLarge) {
		return small.Bytes(), ".png", err
	}
	var b bytes.Buffer
	err := jpeg.Encode(&b, out, &jpeg.Options{Quality: 85})
	return b.Bytes(), ".jpg", err
}

// A boundedBuffer takes at most maxPNGBytes; a larger sheet is a JPEG. A Write beyond them returns
// errTooLarge, which ends the encoding.
type boundedBuffer struct{ bytes.Buffer }

var errTooLarge = errors.New("the sheet is too large for a PNG")

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxPNGBytes {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}

// transformedSample returns a sample under the transformation of a cell, or its transformed version
// from a file if the data have ready-made pairs.
func (r *Writer) transformedSample(c *plan.Cell, sample dataset.Sample) (tensor.Tensor, error) {
	if c.View.Transform == nil {
		if sample.Transformed == nil {
			return sample.Input, nil
		}
		return *sample.Transformed, nil
	}
	// The key seeds the random draws, which thus are those of the run; cells are of trial 0.
	key := measure.Key{Seed: r.Plan.Study.Seed, Data: c.Data.Entry.Name, Transform: c.View.Name}
	return sample.Apply(procedure.Draw(c.View.Transform, c.View.Per == "trial", key, sample.Index))
}

// thumbSize returns the size of an image after its longer side is reduced to at most maxThumbSide
// pixels.
func thumbSize(w, h int) (int, int) {
	if long := max(w, h); long > maxThumbSide {
		return max(1, w*maxThumbSide/long), max(1, h*maxThumbSide/long)
	}
	return w, h
}
