// Coverage measures how often the intervals of scores contain the expected score. It makes the
// tables of docs/explanation/intervals-and-nulls.md.
//
//	go run ./papers/coverage sets -n 200 -sets 50 -model resnet20.onnx -o c200 test_batch.bin data_batch_1.bin data_batch_2.bin
//	go run ./papers/coverage sets -n 200 -sets 150 -model resnet20.onnx -second resnet32.onnx -o c200 test_batch.bin ...
//	noether run c200/study.yaml -o c200/run
//	go run ./papers/coverage table c200/run/scores.csv ...
//	go run ./papers/coverage resampled -n 1000 -sets 200 -models resnet20.onnx,resnet32.onnx -o c1000.csv test_batch.bin ...
//	go run ./papers/coverage resampled -measure prediction-agreement -layers output,output -n 200 -models ...
//	go run ./papers/coverage procedures -n 200 -sets 40 -networks networks/coverage -o procedures
//	go run ./papers/coverage procedures -n 200 -sets 40 -networks networks/coverage -probes -o probes
//	go run ./papers/coverage correlation -samples 2000
//
// sets divides the images of binary files of CIFAR-10 at random into disjoint sets of n, and writes
// a study of them; with -second, of geometry and measures of two models in place of those of one.
// table prints how often intervals contain the mean over all sets, an estimate of the expected
// score. resampled draws sets that may share images, so that there can be more of them, from the
// representations of all images. procedures writes a study of measures that take longer, on sets of
// shapes and networks of papers/coverage/training/coverage.yaml. correlation draws points with a
// known correlation; those of one unit depend on each other.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/measure/similarity"
	"github.com/noether-ml/noether/papers/internal/tablefile"
	"github.com/noether-ml/noether/scores"
)

func main() { tablefile.Main("coverage", run) }

func run(args []string, out io.Writer) error {
	if len(args) < 2 || !slices.Contains([]string{"sets", "resampled", "table", "procedures", "correlation"}, args[0]) {
		return errors.New("usage: coverage sets [flags] IMAGES [IMAGES ...], coverage resampled [flags] IMAGES [IMAGES ...], coverage procedures [flags], coverage correlation -samples N, or coverage table SCORES [SCORES ...]")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	switch args[0] {
	case "table":
		rows, err := tablefile.ReadScores(args[1:]...)
		if err != nil {
			return err
		}
		return write(out, rows)
	case "procedures":
		var p procedureStudy
		flags.IntVar(&p.n, "n", 200, "number of images in a set")
		flags.IntVar(&p.sets, "sets", 40, "number of sets")
		flags.StringVar(&p.networks, "networks", "networks/coverage", "folder of the trainings of papers/coverage/training/coverage.yaml")
		flags.StringVar(&p.out, "o", "coverage", "folder of the study")
		flags.BoolVar(&p.probes, "probes", false, "measure all probes, and nothing else")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return p.write()
	case "resampled":
		p := layerPopulation{}
		flags.IntVar(&p.n, "n", 1000, "number of images in a set")
		flags.IntVar(&p.sets, "sets", 200, "number of sets")
		flags.IntVar(&p.first, "first", 0, "number of the first set, to draw further sets in another run")
		flags.StringVar(&p.models, "models", "", "two CIFAR-10 models in ONNX format, separated by a comma")
		flags.StringVar(&p.measure, "measure", "similarity", "similarity, geometry (of the first model's layer) or prediction-agreement (with the layers output,output)")
		flags.StringVar(&p.layers, "layers", "/layer3/layer3.2/Relu_1_output_0,/layer3/layer3.4/Relu_1_output_0", "a layer of each, separated by a comma")
		flags.StringVar(&p.statistics, "statistics", "", "statistics of similarity, separated by commas (default: all but minibatch-cka, rbf-cka, cca and linear-regression)")
		flags.StringVar(&p.folder, "features", "coverage", "folder where the activations of the layers are kept")
		flags.StringVar(&p.scores, "o", "coverage.csv", "file of the scores")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return p.run(context.Background(), flags.Args(), out)
	case "correlation":
		samples := flags.Int("samples", 2000, "number of samples of each population")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return correlations(out, *samples)
	}
	d := division{}
	flags.IntVar(&d.n, "n", 200, "number of images in a set")
	flags.IntVar(&d.sets, "sets", 50, "number of sets")
	flags.StringVar(&d.model, "model", "", "a CIFAR-10 model in ONNX format")
	flags.StringVar(&d.second, "second", "", "a second model: measure geometry, prediction-agreement and stitching, rather than the measures of one model and a transformation")
	flags.StringVar(&d.layers, "layers", "/layer2/layer2.2/Relu_1_output_0,/layer3/layer3.2/Relu_1_output_0", "layers to measure, separated by commas")
	flags.StringVar(&d.out, "o", "coverage", "folder of the sets and the study")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	return d.write(flags.Args())
}

// A division describes disjoint sets of images, and a study of them.
type division struct {
	n, sets                    int // images of a set; number of sets
	model, second, layers, out string
}

// record is the size in bytes of an image in the binary files of CIFAR-10: a label and three planes
// of 32 x 32 pixels.
const record = 1 + 3*32*32

// write writes the sets and the study.
func (d division) write(files []string) error {
	var images []byte
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if len(data)%record != 0 {
			return fmt.Errorf("%s has %d bytes, which is not a multiple of %d, the size of a record of CIFAR-10", f, len(data), record)
		}
		images = append(images, data...)
	}
	if have := len(images) / record; d.n < 1 || d.sets < 1 || have < d.n*d.sets {
		return fmt.Errorf("cannot make %d sets of %d images from %d images", d.sets, d.n, have)
	}
	if err := os.MkdirAll(d.out, 0o777); err != nil {
		return err
	}
	order := rand.New(rand.NewPCG(1, 1)).Perm(len(images) / record)
	study := bytes.NewBufferString("name: coverage\nseed: 1\ndata:\n")
	for i := range d.sets {
		name := fmt.Sprintf("%03d", i)
		var set []byte
		for _, p := range order[i*d.n : (i+1)*d.n] {
			set = append(set, images[p*record:(p+1)*record]...)
		}
		if err := os.WriteFile(filepath.Join(d.out, name+".bin"), set, 0o666); err != nil {
			return err
		}
		fmt.Fprintf(study, "  - {name: %q, cifar10: %s.bin}\n", name, name)
	}
	if err := d.writeModels(study); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.out, "study.yaml"), study.Bytes(), 0o666)
}

// writeModels writes the models and the measures of the study.
func (d division) writeModels(study io.Writer) error {
	const preprocess = "preprocess: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}"
	model, err := filepath.Abs(d.model)
	if err != nil {
		return err
	}
	if d.second == "" {
		_, err = fmt.Fprintf(study, `models:
  - {name: model, onnx: %q, %s, layers: ["%s"]}
transforms: {name: tilt, rotate: {values: [10]}}
measures:
  - accuracy
  - effective-invariance
  - prediction-divergence
  - distance
  - seis
  - similarity: {statistics: [%s], pool: mean}
`, model, preprocess, strings.ReplaceAll(d.layers, ",", `", "`), strings.Join(statistics(), ", "))
		return err
	}
	second, err := filepath.Abs(d.second)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(study, `models:
  - {name: first, onnx: %q, %[2]s, layers: penultimate}
  - {name: second, onnx: %q, %[2]s, layers: penultimate}
measures:
  - geometry: {pool: mean}
  - prediction-agreement: {between: [first, second]}
  - stitching: {between: [first, second], layers: penultimate}
`, model, preprocess, second)
	return err
}

// statistics returns the statistics of similarity that are measured: all but four that resemble
// others, such as debiased-cka and svcca.
func statistics() []string {
	return slices.DeleteFunc(similarity.Names(), func(name string) bool {
		return slices.Contains([]string{similarity.MinibatchCKA, similarity.RBFCKA, similarity.CCA, similarity.LinearRegression}, name)
	})
}

// A kind identifies a score, which each set has once.
type kind struct{ measure, statistic, layer string }

// kindOf returns the kind of a score. Variant, factor and parameter are part of the statistic, and
// models, and layers that are compared, part of the layer.
func kindOf(r scores.Row) kind {
	k := kind{r.Measure, strings.Join(strings.Fields(r.Statistic+" "+r.Variant+" "+r.Factor+" "+r.Parameter), " "), strings.TrimSpace(r.Model + " " + r.Layer)}
	if r.OtherModel != "" {
		k.layer = r.Model + " " + r.Layer + " - " + r.OtherModel + " " + r.OtherLayer
	}
	return k
}

// A coverage describes the intervals of a kind over all sets.
type coverage struct {
	sets           int
	mean, sd       float64 // of the scores
	width          float64 // mean half width of the intervals / (1.96 sd); about 1 for exact intervals
	widthVariation float64 // standard deviation of the half widths / their mean
	covered        float64 // fraction of the intervals that contain the mean
}

// coverageOf returns the coverage of the rows of a kind, one for each set.
func coverageOf(rows []scores.Row) coverage {
	var values, widths []float64
	for _, r := range rows {
		values, widths = append(values, r.Value), append(widths, (r.High-r.Low)/2)
	}
	c := coverage{sets: len(rows)}
	c.mean, c.sd = stat.MeanStdDev(values, nil)
	mean, sd := stat.MeanStdDev(widths, nil)
	c.width, c.widthVariation = mean/(1.96*c.sd), sd/mean
	for _, r := range rows {
		if r.Low <= c.mean && c.mean <= r.High {
			c.covered += 1 / float64(len(rows))
		}
	}
	return c
}

// write prints a line for each kind that has intervals in at least two sets.
func write(out io.Writer, rows []scores.Row) error {
	kinds := map[kind][]scores.Row{}
	for _, r := range rows {
		if k := kindOf(r); !math.IsNaN(r.Low) {
			kinds[k] = append(kinds[k], r)
		}
	}
	order := slices.SortedFunc(maps.Keys(kinds), func(a, b kind) int {
		return strings.Compare(a.measure+" "+a.statistic+" "+a.layer, b.measure+" "+b.statistic+" "+b.layer)
	})
	if _, err := fmt.Fprintln(out, "| measure | statistic | layer | sets | mean | deviation | half width / 1.96 deviations | coverage |\n| --- | --- | --- | --- | --- | --- | --- | --- |"); err != nil {
		return err
	}
	for _, k := range order {
		c := coverageOf(kinds[k])
		if c.sets < 2 {
			continue
		}
		if _, err := fmt.Fprintf(out, "| %s | %s | %s | %d | %.4f | %.5f | %.2f (varies by %.0f %%) | %.0f %% |\n",
			k.measure, k.statistic, k.layer, c.sets, c.mean, c.sd, c.width, 100*c.widthVariation, 100*c.covered); err != nil {
			return err
		}
	}
	return nil
}
