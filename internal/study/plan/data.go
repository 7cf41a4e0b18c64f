package plan

import (
	"context"
	"errors"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
)

// Data is an opened data set. Labels are its classes; in the copy of forModel they are indices of
// the model's outputs or, if Outputs is set, positions in Outputs.
type Data struct {
	Entry  spec.Data
	Source dataset.Source
	labels int            // number of classes of the source before forModel; 0: none
	Layout measure.Layout // division of Order into blocks and jackknife groups
	Order  Order          // random order of the samples, drawn from the seed

	Outputs         []int              // outputs of the model that are kept before the softmax; nil: all
	Groups          *dataset.Groups    // of the model's outputs, which stand for the classes; nil: none
	modelClassNames []string           // names of the model's classes; nil if unknown
	orderDoubt      string             // why it is doubtful that the classes are in the order of the outputs; ""
	mismatch        error              // why the labels cannot be mapped to the model's outputs; nil if they can
	Unreadable      *UnreadableSamples // samples that could not be read
	Redrawn         *RedrawCounts      // rejected draws of parameters, by transformation
	described       *map[int]Described // by index of the sample; filled by the first call of Describe; one for each copy by forModel
	info            **inputInfo        // filled by the first call of inputInfo; shared by all copies
}

func openData(ctx context.Context, files *open.Files, s *spec.Study, spec spec.Data) (*Data, error) {
	src, err := files.Data(ctx, spec)
	if err != nil {
		return nil, err
	}
	return newOpenData(spec, src, s.Seed), nil
}

func newOpenData(spec spec.Data, src dataset.Source, studySeed uint64) *Data {
	n := src.Len()
	return &Data{Entry: spec, Source: src, labels: len(src.Classes()), Layout: measure.NewLayout(n),
		Order: newOrder(studySeed, spec.Name, n), Unreadable: &UnreadableSamples{n: n, data: spec.Name}, Redrawn: &RedrawCounts{}, described: new(map[int]Described), info: new(*inputInfo)}
}

// An inputInfo describes the samples of a data set by the first one.
type inputInfo struct {
	size     [2]int            // height and width of an image in pixels; zero if they are not known
	waveform *dataset.Waveform // of audio; otherwise nil
	arrays   []dataset.Array   // of ready-made arrays; otherwise nil
}

func (i inputInfo) kind() string {
	switch {
	case i.arrays != nil:
		return "arrays"
	case i.waveform != nil:
		return "audio"
	}
	return "images"
}

// inputInfo reads the first sample at the first call. If that fails, the result is zero.
func (d *Data) inputInfo(ctx context.Context) inputInfo {
	if *d.info == nil {
		*d.info = d.readInfo(ctx)
	}
	return **d.info
}

func (d *Data) readInfo(ctx context.Context) *inputInfo {
	s, err := dataset.Describe(ctx, d.Source, 0)
	if err != nil {
		return &inputInfo{}
	}
	out := &inputInfo{waveform: s.Waveform, arrays: s.Arrays}
	if out.kind() != "images" {
		return out
	}
	s, err = d.Source.At(ctx, 0, dataset.Frame{}) // not resized
	if err == nil && s.Input.Rank() == 3 {
		out.size = [2]int{s.Input.Shape[1], s.Input.Shape[2]}
	}
	return out
}

// A Described is a sample without its input. SourceIndex is its index into Data.Source,
// Sample.Index that in the whole data set.
type Described struct {
	dataset.Sample
	SourceIndex int
}

// DescribeFirst returns, by Sample.Index, the first n samples of the random order (or all if
// Describe was called) without inputs. Unreadable ones are left out.
func (d *Data) DescribeFirst(ctx context.Context, n int) (map[int]Described, error) {
	if *d.described != nil {
		return *d.described, nil
	}
	return d.describe(ctx, d.Order.First(n))
}

// Describe returns the readable samples of a data set by Sample.Index, without their inputs.
func (d *Data) Describe(ctx context.Context) (map[int]Described, error) {
	if *d.described == nil {
		byIndex, err := d.describe(ctx, d.Order.First(d.Order.Len()))
		if err != nil {
			return nil, err
		}
		*d.described = byIndex
	}
	return *d.described, nil
}

// describe returns the readable samples at indices of the source, by Sample.Index.
func (d *Data) describe(ctx context.Context, indices []int) (map[int]Described, error) {
	byIndex := make(map[int]Described, len(indices))
	for _, i := range indices {
		s, err := dataset.Describe(ctx, d.Source, i)
		var bad *dataset.BadSample
		if err != nil && !errors.As(err, &bad) {
			return nil, err
		}
		if err == nil {
			byIndex[s.Index] = Described{s, i}
		}
	}
	return byIndex, nil
}
