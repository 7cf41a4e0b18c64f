// Segmentation makes the tables of the study papers/segmentation/segmentation.yaml: means over
// trainings, that is, over networks that differ in the seed alone.
//
//	go run ./papers/segmentation runs/segmentation/scores.csv papers/results
//
// Differences are between trainings of the same seed. A difference is followed by "seen" if its
// interval is above 0, "not seen" if it is below 0, else "open". f(x) is the class map of an image
// x, and τ f(x) the same with its pixels moved by the transformation.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/papers/internal/tablefile"
	"github.com/noether-ml/noether/scores"
)

func main() { tablefile.Main("segmentation", run) }

func run(args []string, _ io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: segmentation SCORES FOLDER: the file of scores, and a folder for the tables")
	}
	rows, err := tablefile.ReadScores(args[0])
	if err != nil {
		return err
	}
	values, err := read(rows)
	if err != nil {
		return err
	}
	for name, table := range map[string][][]string{
		"segmentation": outputs(values), "segmentation-differences": effects(values), "segmentation-depth": depths(values),
	} {
		if err := tablefile.Write(filepath.Join(args[1], name+".csv"), table); err != nil {
			return err
		}
	}
	return nil
}

// A quantity is what is measured of every training of a kind. layer is "" for the output.
type quantity struct {
	statistic, view, layer string // view: the transformation and its parameter
}

// A kind is a class of trainings that differ in nothing but the seed.
type kind struct{ decoder, augmentation string }

// read returns the values of the scores by kind of training, without those of single factors.
func read(rows []scores.Row) (map[kind]map[quantity]tablefile.Sample, error) {
	out := map[kind]map[quantity]tablefile.Sample{}
	for _, r := range rows {
		if r.Factor != "" || math.IsNaN(r.Value) {
			continue
		}
		_, name, _ := strings.Cut(r.Model, "/") // series/seed-1-augment-plain-network-fcn
		part := strings.Split(name, "-")
		if len(part) != 6 || part[0] != "seed" || part[2] != "augment" || part[4] != "network" {
			return nil, fmt.Errorf("model %q is no training of papers/segmentation/training/segmentation.yaml", r.Model)
		}
		k := kind{part[5], part[3]}
		if out[k] == nil {
			out[k] = map[quantity]tablefile.Sample{}
		}
		q := quantity{r.Statistic, strings.TrimSpace(r.Transform + " " + r.Parameter), r.Layer}
		if out[k][q] == nil {
			out[k][q] = tablefile.Sample{}
		}
		out[k][q][part[1]] = r.Value
	}
	return out, nil
}

// The rows and columns of the tables, in order. A key names a transformation and its parameter, as
// in the scores: of a shift, the fraction of the side of 32 pixels.
var (
	kinds = []kind{{"fcn", "plain"}, {"fcn", "affine"}, {"unet", "plain"}, {"unet", "affine"}}
	views = []struct{ key, name string }{
		{"shift 0.03125", "translation by 1 pixel"}, {"shift 0.125", "translation by 4 pixels"},
		{"rotation 15", "rotation by 15 degrees"}, {"rotation 45", "rotation by 45 degrees"}, {"rotation 90", "rotation by 90 degrees"},
	}
	decoders = map[string]string{"fcn": "FCN", "unet": "U-Net"}
)

// A statistic of class maps, which is better if it is higher. key is its name in the scores. There
// moved means on transformed images, clean on others.
type statistic struct{ key, name string }

var (
	labelled   = statistic{"moved-miou", "mean IoU with labels"}
	statistics = []statistic{labelled, {"pixel-agreement", "pixel agreement"}, {"miou", "mean IoU with τ f(x)"}}
)

// cells returns the mean of a sample and its interval, which is clipped to [0, limit].
func cells(s tablefile.Sample, limit float64) []string {
	mean, low, high := tablefile.Interval(s.Values())
	return tablefile.Cells("%.3f", mean, max(low, 0), min(high, limit))
}

// outputs returns the table of the statistics of class maps. For images that are not transformed
// there is only the one that compares with the labels.
func outputs(values map[kind]map[quantity]tablefile.Sample) [][]string {
	table := [][]string{{"network", "augmentation", "transformation", "statistic", "value", "low", "high"}}
	for _, k := range kinds {
		head := []string{decoders[k.decoder], k.augmentation}
		clean := values[k][quantity{"clean-miou", views[0].key, ""}] // the same for all views
		table = append(table, slices.Concat(head, []string{"none", labelled.name}, cells(clean, 1)))
		for _, v := range views {
			for _, s := range statistics {
				table = append(table, slices.Concat(head, []string{v.name, s.name}, cells(values[k][quantity{s.key, v.key, ""}], 1)))
			}
		}
	}
	return table
}

// effects returns the table of differences of these statistics between two kinds of trainings, or
// between two transformations: means over seeds.
func effects(values map[kind]map[quantity]tablefile.Sample) [][]string {
	table := [][]string{{"difference", "trainings", "transformation", "statistic", "value"}}
	add := func(name, trainings, view string, of func(s statistic) (more, less tablefile.Sample)) {
		for _, s := range statistics {
			more, less := of(s)
			table = append(table, []string{name, trainings, view, s.name, difference(more, less)})
		}
	}
	between := func(name, trainings string, more, less kind) {
		for _, v := range views {
			add(name, trainings, v.name, func(s statistic) (a, b tablefile.Sample) {
				q := quantity{s.key, v.key, ""}
				return values[more][q], values[less][q]
			})
		}
	}
	for _, decoder := range []string{"fcn", "unet"} {
		between("affine less plain", decoders[decoder], kind{decoder, "affine"}, kind{decoder, "plain"})
	}
	for _, augmentation := range []string{"plain", "affine"} {
		between("U-Net less FCN", augmentation, kind{"unet", augmentation}, kind{"fcn", augmentation})
	}
	for _, k := range kinds {
		add("4 pixels less 1 pixel", decoders[k.decoder]+", "+k.augmentation, "translation", func(s statistic) (a, b tablefile.Sample) {
			return values[k][quantity{s.key, "shift 0.125", ""}], values[k][quantity{s.key, "shift 0.03125", ""}]
		})
	}
	return table
}

// difference returns the mean of the differences of two samples, its interval, and a verdict.
func difference(more, less tablefile.Sample) string {
	mean, low, high := tablefile.Interval(more.Minus(less))
	return fmt.Sprintf("%+.3f [%+.3f, %+.3f] %s", mean, low, high, verdict(low, high))
}

// verdict says whether a difference with the interval from low to high is seen.
func verdict(low, high float64) string {
	switch {
	case low > 0:
		return "seen"
	case high < 0:
		return "not seen"
	}
	return "open"
}

// depths returns the table of the equivariance error of every layer f under each transformation T:
// |f(T(x)) - τ f(x)| / |τ f(x)|.
func depths(values map[kind]map[quantity]tablefile.Sample) [][]string {
	table := [][]string{{"network", "augmentation", "layer", "statistic", "value", "low", "high"}}
	for _, k := range kinds {
		var layers []string
		for q := range values[k] {
			if q.statistic == "relative-error" && !slices.Contains(layers, q.layer) {
				layers = append(layers, q.layer)
			}
		}
		slices.SortFunc(layers, func(a, b string) int { return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b)) })
		for _, layer := range layers {
			name, _, _ := strings.Cut(layer, "/")
			if name == "y" { // the output
				name = "logits"
			}
			for _, v := range views {
				q := quantity{"relative-error", v.key, layer}
				table = append(table, slices.Concat([]string{decoders[k.decoder], k.augmentation, name, v.name}, cells(values[k][q], math.Inf(1))))
			}
		}
	}
	return table
}

// order returns the index of the part of the network that a layer belongs to.
func order(layer string) int {
	return slices.IndexFunc([]string{"Relu", "stage", "decoder", "y"}, func(prefix string) bool { return strings.HasPrefix(layer, prefix) })
}
