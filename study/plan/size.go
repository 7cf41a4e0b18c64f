package plan

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/transform"
)

// oneSize checks that all data of the study have images of one size, where neither a model nor its
// preprocessing says which: sizes do not mix in a batch, and layers of one model would have other
// shapes on other data.
func (p *Plan) oneSize(ctx context.Context, m *Model) error {
	if f := m.Net.Frame(); f.Height > 0 || f.Resize > 0 || m.Net.TakesAudio() {
		return nil
	}
	first := p.Data[0].size(ctx)
	for _, d := range p.Data[1:] {
		size := d.size(ctx)
		if size == first || size == [2]int{} || first == [2]int{} {
			continue
		}
		return m.Entry.Errorf("preprocess", "model %s takes images of any size, and those of data %s are %s, of data %s %s: choose one by preprocess: {crop: %s}, or a study for each",
			m.Entry.Name, p.Data[0].Entry.Name, sides(first), d.Entry.Name, sides(size), square(first))
	}
	return nil
}

func sides(size [2]int) string { return fmt.Sprintf("%d x %d", size[0], size[1]) }

// square is a size as crop takes it.
func square(size [2]int) string {
	if size[0] == size[1] {
		return fmt.Sprint(size[0])
	}
	return fmt.Sprintf("[%d, %d]", size[0], size[1])
}

// fits checks that a model takes what the data are, and that the transformations move it.
func (p *Plan) fits(ctx context.Context, m *Model) error {
	for _, d := range p.Data {
		waveform := d.sound(ctx)
		switch {
		case waveform != nil && !m.Net.TakesAudio():
			return m.Entry.Errorf("", "model %s takes images, and data %s are sounds", m.Entry.Name, d.Entry.Name)
		case waveform == nil && m.Net.TakesAudio():
			return m.Entry.Errorf("", "model %s takes sounds, and data %s are images", m.Entry.Name, d.Entry.Name)
		}
	}
	for _, t := range p.Study.Transforms {
		for _, c := range t.Cells {
			switch {
			case t.On == "activations" || c.Transform == nil:
			case m.Net.TakesAudio() && !transform.OnAudio(c.Transform):
				return fmt.Errorf("transformation %s is of images, and model %s takes sounds", t.Name, m.Entry.Name)
			case !m.Net.TakesAudio() && !transform.OnImages(c.Transform):
				return fmt.Errorf("transformation %s is of sounds, and model %s takes images", t.Name, m.Entry.Name)
			}
		}
	}
	return nil
}
