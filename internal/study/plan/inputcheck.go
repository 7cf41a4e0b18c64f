package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/transform"
)

// takes returns "arrays", "audio" or "images".
func takes(m *Model) string {
	switch {
	case m.Net.TakesArrays():
		return "arrays"
	case m.Net.TakesAudio():
		return "audio"
	}
	return "images"
}

// checkImageSizes returns an error if images differ in size and nothing sets one. Sizes cannot be
// mixed in a batch, and shapes of layers would differ between data.
func (p *Plan) checkImageSizes(ctx context.Context, m *Model) error {
	// A frame is how images are resized and cropped; a size of 0 is not set.
	if f := m.Net.Frame(); !m.Net.TakesInput() || f.Height > 0 || f.Resize > 0 || takes(m) != "images" {
		return nil
	}
	first := p.Data[0].inputInfo(ctx).size
	for _, d := range p.Data[1:] {
		size := d.inputInfo(ctx).size
		// [2]int{}: unknown.
		if size == first || size == [2]int{} || first == [2]int{} {
			continue
		}
		return m.Entry.At("preprocess").Errorf("model %s takes images of any size, but those of data %s are %s and those of data %s are %s: set one size with preprocess: {crop: %s}, or write a study for each",
			m.Entry.Name, p.Data[0].Entry.Name, sizeText(first), d.Entry.Name, sizeText(size), cropText(first))
	}
	return nil
}

func sizeText(size [2]int) string { return fmt.Sprintf("%d x %d", size[0], size[1]) }

func cropText(size [2]int) string {
	if size[0] == size[1] {
		return fmt.Sprint(size[0])
	}
	return fmt.Sprintf("[%d, %d]", size[0], size[1])
}

// checkRecorded returns an error if there are not as many recorded activations as samples. Of data
// of which some samples are left out, the rows may be those of all, and a folder that lists its
// samples may lack some that could not be read.
func (p *Plan) checkRecorded(m *Model) error {
	n, listed := m.Net.Recorded()
	for _, d := range p.Data {
		have := d.Source.Len()
		if have > n && !listed || have < n && d.Entry.Limit == 0 && d.Entry.Where == nil && d.Entry.Split == nil {
			return m.Entry.Activations.Errorf("there are activations of %d samples, and data %s have %d: record a row for each sample, in the order of the data", n, d.Entry.Name, have)
		}
	}
	return nil
}

// padding returns for each data set a sentence on recordings that are padded for a model.
func (p *Plan) padding(m *Model) (notes []string) {
	for _, d := range p.Data {
		short, all := dataset.Shorter(d.Source, m.Net.Frame())
		if short == 0 {
			continue
		}
		how := "padded with zeros"
		switch {
		case m.Net.Frame().Repeat != "":
			how = "repeated"
		case m.Net.Standardises():
			how += ", which count in the mean and deviation by which they are standardised"
		}
		notes = append(notes, fmt.Sprintf("data %s: %d of %d recordings are shorter than the input of model %s and are %s: fit: crop leaves them out", d.Entry.Name, short, all, m.Entry.Name, how))
	}
	return notes
}

// checkInputs returns an error if a model does not take the kind of samples that the data have, if
// the arrays of two data sets differ in name or shape, or if a transformation does not apply to the
// samples.
func (p *Plan) checkInputs(ctx context.Context, m *Model) error {
	if !m.Net.TakesInput() {
		return p.checkRecorded(m)
	}
	taken := takes(m)
	needed := false // some data need transformations: their files do not hold pairs of x and T(x)
	for _, d := range p.Data {
		info := d.inputInfo(ctx)
		if kind := info.kind(); kind != taken {
			return m.Entry.At().Errorf("model %s takes %s, but data %s are %s", m.Entry.Name, taken, d.Entry.Name, kind)
		}
		if first := p.Data[0].inputInfo(ctx); !slices.EqualFunc(info.arrays, first.arrays, dataset.Array.Equal) {
			return m.Entry.At().Errorf("data %s are %s, and data %s %s: write a study for each", p.Data[0].Entry.Name, dataset.ArraysText(first.arrays), d.Entry.Name, dataset.ArraysText(info.arrays))
		}
		needed = needed || !d.Entry.ReadyPairs()
	}
	maps := dataset.MapsOf(p.Data[0].inputInfo(ctx).arrays)
	for _, t := range p.Study.Transforms {
		for _, c := range t.Cells { // one for each value of the transformation's parameters
			switch {
			case t.On == "activations" || c.Transform == nil:
			case taken == "arrays" && needed && (maps == nil || !transform.OnMaps(c.Transform)):
				other := ""
				if maps != nil {
					other = ", or use one that applies to maps, such as rotate, flip or gaussian-blur"
				}
				return fmt.Errorf("transformation %s applies to images or audio, but model %s takes arrays: give transformed arrays as pairs%s", t.Name, m.Entry.Name, other)
			case taken == "arrays":
			case m.Net.TakesAudio() && !transform.OnAudio(c.Transform):
				return fmt.Errorf("transformation %s applies to images, but model %s takes audio", t.Name, m.Entry.Name)
			case !m.Net.TakesAudio() && !transform.OnImages(c.Transform):
				return fmt.Errorf("transformation %s applies to audio, but model %s takes images", t.Name, m.Entry.Name)
			}
		}
	}
	return nil
}
