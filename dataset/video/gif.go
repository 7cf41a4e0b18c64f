package video

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"iter"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/tensor"
)

const (
	maxGIF    = 256 << 20 // bytes of a file
	maxPixels = 1 << 28   // of all frames together: the decoder holds them all in memory

	// gifHeader is the number of bytes before the colour table: the signature, then width (at byte
	// 6), height (8), flags (10) and two bytes more.
	gifHeader = 13
)

// gifClip returns an animated GIF as a clip, composed as in a browser.
func gifClip(path string) clip {
	return clip{name: filepath.Base(path), frames: func(ctx context.Context) iter.Seq2[tensor.Tensor, error] {
		return func(yield func(tensor.Tensor, error) bool) {
			if err := drawGIF(path, func(t tensor.Tensor) bool { return yield(t, ctx.Err()) && ctx.Err() == nil }); err != nil {
				yield(tensor.Tensor{}, err)
			}
		}
	}}
}

// drawGIF yields the frames of a file.
func drawGIF(path string, yield func(tensor.Tensor) bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > maxGIF {
		return fmt.Errorf("the GIF is larger than %d MiB: convert it to a video", maxGIF>>20)
	}
	data, err := filesys.ReadFile(path)
	if err != nil {
		return err
	}
	return composeFrames(data, yield)
}

// composeFrames yields the frames of a GIF, each drawn over what the earlier ones leave.
func composeFrames(data []byte, yield func(tensor.Tensor) bool) error {
	if err := checkPixels(data); err != nil {
		return err
	}
	g, err := gif.DecodeAll(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("damaged gif: %w", err)
	}
	bounds := image.Rect(0, 0, g.Config.Width, g.Config.Height)
	if bounds.Empty() {
		return errors.New("damaged gif: it has no size")
	}
	canvas := image.NewRGBA(bounds)
	var before []uint8 // the pixels that a frame with DisposalPrevious restores
	for i, frame := range g.Image {
		if g.Disposal[i] == gif.DisposalPrevious {
			before = append(before[:0], canvas.Pix...)
		}
		draw.Draw(canvas, frame.Rect, frame, frame.Rect.Min, draw.Over)
		if !yield(tensorOf(canvas)) {
			return nil
		}
		switch g.Disposal[i] {
		case gif.DisposalBackground:
			draw.Draw(canvas, frame.Rect, image.NewUniform(color.Transparent), image.Point{}, draw.Src)
		case gif.DisposalPrevious:
			copy(canvas.Pix, before)
		}
	}
	return nil
}

// tensorOf returns an image as 3 x h x w. Transparent pixels are black.
func tensorOf(img *image.RGBA) tensor.Tensor {
	n := len(img.Pix) / 4
	t := tensor.New(3, img.Rect.Dy(), img.Rect.Dx())
	for i := range n {
		for c := range 3 {
			t.Data[c*n+i] = float32(img.Pix[4*i+c]) / 255
		}
	}
	return t
}

// checkPixels returns an error if the canvas and all frames together have more than maxPixels. It
// reads the sizes in their headers, without decoding: a short file may decode to more than the
// memory holds.
func checkPixels(data []byte) error {
	if len(data) < gifHeader {
		return errors.New("damaged gif: it ends within its header")
	}
	total := word(data[6:]) * word(data[8:])
	at := gifHeader + colourTable(data[10])
	for at < len(data) && total <= maxPixels {
		switch data[at] {
		case 0x21: // an extension: its label, then blocks
			at = skipBlocks(data, at+2)
		case 0x2c: // a frame: position, size, flags, colour table, width of the LZW codes, then blocks
			if at+10 > len(data) {
				return errors.New("damaged gif: it ends within a frame")
			}
			total += word(data[at+5:]) * word(data[at+7:])
			at = skipBlocks(data, at+10+colourTable(data[at+9])+1)
		default: // the end, or an error that the decoder reports
			return nil
		}
	}
	if total > maxPixels {
		return fmt.Errorf("the frames of the GIF have more than %d million pixels together: convert it to a video", maxPixels/1_000_000)
	}
	return nil
}

// word returns a little-endian 16-bit number.
func word(b []byte) int { return int(b[0]) | int(b[1])<<8 }

// colourTable returns the number of bytes of the colour table that flags describe.
func colourTable(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// skipBlocks returns the end of a chain of blocks. Each block starts with its length, and the last
// one is empty.
func skipBlocks(data []byte, at int) int {
	for at < len(data) && data[at] != 0 {
		at += int(data[at]) + 1
	}
	return at + 1
}
