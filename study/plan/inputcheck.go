package plan

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/transform"
)

// checkImageSizes returns an error if data have images of different sizes and neither the model nor
// its preprocessing sets one. Sizes cannot be mixed in a batch, and the shapes of layers would
// differ between data.
func (p *Plan) checkImageSizes(ctx context.Context, m *Model) error {
	if f := m.Net.Frame(); f.Height > 0 || f.Resize > 0 || m.Net.TakesAudio() {
		return nil
	}
	first := p.Data[0].size(ctx)
	for _, d := range p.Data[1:] {
		size := d.size(ctx)
		if size == first || size == [2]int{} || first == [2]int{} {
			continue
		}
		return m.Entry.Errorf("preprocess", "model %s takes images of any size, but those of data %s are %s and those of data %s are %s: set one size with preprocess: {crop: %s}, or write a study for each",
			m.Entry.Name, p.Data[0].Entry.Name, sizeText(first), d.Entry.Name, sizeText(size), cropText(first))
	}
	return nil
}

// sizeText formats a size as height x width.
func sizeText(size [2]int) string { return fmt.Sprintf("%d x %d", size[0], size[1]) }

// cropText formats a size as a value of the key crop.
func cropText(size [2]int) string {
	if size[0] == size[1] {
		return fmt.Sprint(size[0])
	}
	return fmt.Sprintf("[%d, %d]", size[0], size[1])
}

// checkInputs returns an error if a model does not take the kind of the data, or if a
// transformation does not apply to it.
func (p *Plan) checkInputs(ctx context.Context, m *Model) error {
	for _, d := range p.Data {
		waveform := d.audioInfo(ctx)
		switch {
		case waveform != nil && !m.Net.TakesAudio():
			return m.Entry.Errorf("", "model %s takes images, but data %s are audio", m.Entry.Name, d.Entry.Name)
		case waveform == nil && m.Net.TakesAudio():
			return m.Entry.Errorf("", "model %s takes audio, but data %s are images", m.Entry.Name, d.Entry.Name)
		}
	}
	for _, t := range p.Study.Transforms {
		for _, c := range t.Cells {
			switch {
			case t.On == "activations" || c.Transform == nil:
			case m.Net.TakesAudio() && !transform.OnAudio(c.Transform):
				return fmt.Errorf("transformation %s applies to images, but model %s takes audio", t.Name, m.Entry.Name)
			case !m.Net.TakesAudio() && !transform.OnImages(c.Transform):
				return fmt.Errorf("transformation %s applies to audio, but model %s takes images", t.Name, m.Entry.Name)
			}
		}
	}
	return nil
}
