package video

import (
	"context"
	"errors"
	"fmt"
	"image"
	"path"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/tensor"
)

// sequencesVersion changes when the same file gives another sequence.
const sequencesVersion = 1

// maxFrames is the largest number of frames of a sequence, which is in memory as a whole.
const maxFrames = 4096

// OpenSequences opens a folder of videos and animated GIFs. A sample is a video: its input is the
// first frame, and with Frame.Frames the others are its Frames. Labels are those that
// dataset.OpenFolder finds.
func OpenSequences(ctx context.Context, o dataset.FolderOptions) (dataset.Source, error) {
	src, err := dataset.OpenDecoded(ctx, o, dataset.Decoder{
		Kind: "sequences", Version: sequencesVersion, What: "videos", Extensions: videoExtensions, Sequences: true, Read: readSequence,
	})
	if err != nil {
		return nil, err
	}
	for i := range src.Len() {
		if name := src.Describe(i).Name; !strings.EqualFold(path.Ext(name), ".gif") {
			if _, err := findFFmpeg(""); err != nil {
				return nil, fmt.Errorf("opening folder %s: %s: %w", o.Dir, name, err)
			}
			break
		}
	}
	return src, nil
}

// readSequence reads the frames of a video.
func readSequence(ctx context.Context, file string, f dataset.Frame, s *dataset.Sample) error {
	c, err := entry{path: file}.clip(ctx, "")
	if err != nil {
		return err
	}
	framed := f
	framed.Frames = false
	n := 0
	for t, err := range c.frames(ctx) {
		if err != nil {
			return err
		}
		if n++; n > maxFrames {
			return fmt.Errorf("it has more than %d frames", maxFrames)
		}
		t, err := frameBytes(t, framed)
		switch {
		case err != nil:
			return err
		case n == 1:
			s.Input = t
		default:
			s.Frames = append(s.Frames, t)
		}
		if !f.Frames {
			break
		}
	}
	if n == 0 {
		return errors.New("it has no frames")
	}
	return nil
}

// frameBytes brings a frame of a video, c x h x w with values of 8 bits in [0, 1], to the frame of a
// model.
func frameBytes(t tensor.Tensor, f dataset.Frame) (tensor.Tensor, error) {
	c, h, w := t.Shape[0], t.Shape[1], t.Shape[2]
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range h * w {
		for k := range 3 {
			img.Pix[4*i+k] = uint8(t.Data[min(k, c-1)*h*w+i]*255 + 0.5)
		}
		img.Pix[4*i+3] = 255
	}
	return f.Image(img)
}
