package open

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/benchmark"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/transform"
)

// A Source holds the keys of one kind of data in an entry of a study file.
type Source interface {
	Open(ctx context.Context, f *Files, d spec.Data) (dataset.Source, error)
}

// Kind returns the kind of data whose keys are the struct K.
func Kind[K any, P interface {
	*K
	Source
}](name, doc string) spec.DataKind {
	return spec.DataKind{Name: name, Doc: doc, Keys: reflect.TypeFor[K]()}
}

// asSource returns an untyped nil on an error.
func asSource[S dataset.Source](s S, err error) (dataset.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Data opens an entry of data: its source, the selection of samples, and their corruption. Errors
// have the position in the study file.
func (f *Files) Data(ctx context.Context, d spec.Data) (dataset.Source, error) {
	src, err := f.source(ctx, d)
	if err == nil && d.Benchmark != nil && !d.Benchmark.Own {
		src, err = f.ofBenchmark(ctx, d, src)
	}
	if err == nil {
		src, err = chooseSamples(ctx, d, src, f.seed)
	}
	if err != nil {
		return nil, err
	}
	if c := d.Corrupt; c != nil { // of one kind and severity: the parser has expanded lists
		corruption := transform.Corrupt{Kind: c.Kinds[0], Severity: transform.Fixed(float64(c.Severities[0]))}
		src = dataset.Corrupt(src, corruption, f.seed, d.Name)
	}
	if src.Len() == 0 {
		return nil, d.At().Errorf("the data have no samples")
	}
	if print := src.Fingerprint(); d.Fingerprint != "" && d.Fingerprint != print {
		return nil, d.At("fingerprint").Errorf("the fingerprint of the samples is %s and differs from that of the study: the data changed, or another version reads them; remove \"fingerprint\" to accept the new data", print)
	}
	return src, nil
}

// ofBenchmark returns the samples of a published data set of a benchmark: those of a severity in an
// array of all, images that are not cropped again or that lose a border, and classes that groups of
// outputs stand for.
func (f *Files) ofBenchmark(ctx context.Context, d spec.Data, src dataset.Source) (dataset.Source, error) {
	known, err := benchmark.Find(d.Benchmark.Name)
	if err != nil {
		return nil, d.At("benchmark").Errorf("%v", err)
	}
	if d.Benchmark.Kind == benchmark.Clean {
		return src, nil
	}
	if known.Layout == benchmark.Stacked {
		n, of := src.Len(), len(known.Severities)
		if n%of != 0 {
			return nil, d.At("benchmark").Errorf("the array has %d images, which are not %d severities of as many", n, of)
		}
		from := (d.Benchmark.Severity - 1) * (n / of)
		indices := dataset.Indices(n)
		return dataset.Subset(src, indices[from:from+n/of])
	}
	if known.Border > 0 {
		src = dataset.Trimmed(src, known.Border)
	}
	if known.Ready {
		src = dataset.Uncropped(src)
	}
	if known.Groups == nil {
		return src, nil
	}
	images, ok := d.Source.(*Images)
	if !ok {
		return nil, d.At("benchmark").Errorf("%s is a folder of images", known.Name)
	}
	folders, err := f.findAll(ctx, d, []spec.Path{images.Folder})
	if err != nil {
		return nil, err
	}
	outputs, err := groupOutputs(known, filepath.Dir(folders[0]))
	if err == nil {
		src, err = dataset.Grouped(ctx, src, outputs, known.Mean)
	}
	if err != nil {
		return nil, d.At("benchmark").Errorf("%s: %w", known.Name, err)
	}
	return src, nil
}

// groupOutputs returns the outputs of a model of ImageNet's 1,000 classes that stand for each class
// of a benchmark.
func groupOutputs(known benchmark.Benchmark, root string) (map[string][]int, error) {
	groups, err := known.Groups(root)
	if err != nil {
		return nil, err
	}
	synsets := dataset.ImageNetSynsets()
	out := map[string][]int{}
	for class, members := range groups {
		for _, m := range members {
			i := slices.Index(synsets, m)
			if i < 0 {
				if i, err = strconv.Atoi(m); err != nil {
					return nil, fmt.Errorf("%q of class %s is no class of ImageNet", m, class)
				}
			}
			out[class] = append(out[class], i)
		}
		slices.Sort(out[class])
	}
	return out, nil
}

func (f *Files) source(ctx context.Context, d spec.Data) (dataset.Source, error) {
	if d.Join != nil {
		return f.join(ctx, d.Join.Parts)
	}
	return d.Source.(Source).Open(ctx, f, d)
}

func (f *Files) join(ctx context.Context, entries []spec.Data) (dataset.Source, error) {
	var names []string
	var parts []dataset.Source
	for _, d := range entries {
		part, err := f.Data(ctx, d)
		if err != nil {
			for _, src := range parts {
				dataset.Close(src)
			}
			return nil, spec.Within("part "+d.Name, err)
		}
		names, parts = append(names, d.Name), append(parts, part)
	}
	return asSource(dataset.Concat(names, parts))
}
