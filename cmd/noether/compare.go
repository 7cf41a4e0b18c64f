package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/seis"
	"github.com/noether-ml/noether/measure/similarity"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
)

type compareFlags struct {
	measures   []string
	memory     string
	seis       seis.Settings
	similarity similarity.Settings
	seed       uint64
}

// defaultStatistics leaves out those that take minutes on large arrays.
func defaultStatistics() []string {
	return []string{
		similarity.LinearCKA, similarity.DebiasedCKA, similarity.SVCCA, similarity.PWCCA, similarity.Procrustes, similarity.MutualKNN,
	}
}

func compareCommand() *cobra.Command {
	flags := compareFlags{seis: seis.Defaults(), similarity: similarity.Defaults()}
	var asJSON bool
	c := &cobra.Command{
		Use:   "compare X Y [X2 Y2 ...]",
		Short: "Compare arrays of activations from any framework",
		Long: `Compares arrays of activations of the same inputs, from any framework: row i of both is input i.
An array is an .npy file, or one in an .npz, .safetensors or .parquet file: FILE.npz:KEY. With a single such file all pairs of its arrays are compared.
Arrays of more than two axes are n x c x ...; each row is flattened to a vector, or averaged over the axes after c (--pool mean).

Statistics: ` + strings.Join(similarity.Names(), ", ") + `;
all of them: --measure all. With --measure seis, the second array is the same layer on T(x), both b x c x h x w or b x c x t.`,
		Example: "  noether compare X.npy Y.npy\n  noether compare --measure linear-cka,svcca activations.npz --json\n  noether compare --measure seis Z.npy ZT.npy",
		Args:    usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.resolve(c); err != nil {
				return err
			}
			if err := checkArrays(args); err != nil {
				return err
			}
			pairs, err := arrayPairs(c.Context(), args)
			if err != nil {
				return err
			}
			if len(pairs) == 0 {
				return usagef(c, "compare takes pairs of arrays, or one file with two or more")
			}
			if library := blas.Load(); library.Hint != "" {
				note("no fast BLAS was found: " + library.Hint)
			}
			var cells []scores.Cell // the statistics of one pair of arrays each
			for _, p := range pairs {
				cell, err := flags.compare(c.Context(), p)
				if err != nil {
					return err
				}
				cells = append(cells, cell)
			}
			return printComparisons(cells, asJSON)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&flags.measures, "measure", nil, "what to compute: names of statistics, all, or seis (default "+strings.Join(defaultStatistics(), ",")+")")
	f.StringSliceVar(&flags.measures, "statistic", nil, "the same as --measure")
	f.StringVar(&flags.similarity.Pool, "pool", flags.similarity.Pool, "arrays of more than two axes: none (flattened) or mean (over the axes after the second)")
	f.Float64Var(&flags.similarity.Variance, "variance", flags.similarity.Variance, "svcca, seis: fraction of the variance that the leading components explain")
	f.Float64Var(&flags.similarity.Bandwidth, "bandwidth", flags.similarity.Bandwidth, "rbf-cka: the kernel's width, as a fraction of the median distance")
	f.IntVar(&flags.similarity.Neighbours, "neighbours", flags.similarity.Neighbours, "statistics of nearest neighbours: number of neighbours of a sample")
	f.IntVar(&flags.similarity.Samples, "samples", flags.similarity.Samples, "statistics of n x n values: samples at most; memory and time grow with the square")
	f.StringVar(&flags.similarity.Metric, "metric", flags.similarity.Metric, "statistics of nearest neighbours: euclidean or cosine")
	f.StringVar(&flags.similarity.Centre, "centre", flags.similarity.Centre, "rsa, cosine neighbours, aligned-cosine, permutation-procrustes and eigenspace-overlap: columns (subtract the mean of each column) or none")
	f.StringVar(&flags.similarity.Dissimilarity, "dissimilarity", flags.similarity.Dissimilarity, "rsa: cosine, correlation, euclidean or squared-euclidean")
	f.StringVar(&flags.similarity.Comparison, "comparison", flags.similarity.Comparison, "rsa: spearman, pearson, kendall or cosine")
	f.StringVar(&flags.similarity.Norm, "norm", flags.similarity.Norm, "rsm-norm-difference: frobenius or spectral")
	f.Float64Var(&flags.similarity.Alpha, "alpha", flags.similarity.Alpha, "shape-metric: 1 up to rotations, 0 up to invertible linear maps")
	f.Float64Var(&flags.similarity.Lambda, "lambda", flags.similarity.Lambda, "gulp: regularisation, relative to a total variance of 1")
	f.IntVar(&flags.similarity.Folds, "folds", flags.similarity.Folds, "ridge-predictivity, pls-predictivity: folds")
	f.IntVar(&flags.similarity.Components, "components", flags.similarity.Components, "pls-predictivity: largest number of components")
	f.Float64Var(&flags.similarity.Ridge, "ridge", flags.similarity.Ridge, "ridge-predictivity: penalty, as a part of the mean variance of the variables")
	f.IntVar(&flags.seis.Positions, "positions", flags.seis.Positions, "seis: positions to which larger layers are average-pooled")
	f.StringVar(&flags.memory, "memory", "1GiB", "memory bound")
	f.BoolVar(&flags.similarity.Calibrate, "calibrate", false, "also (value - null) / (1 - null): 0 for unrelated matrices of any size, 1 for equal ones")
	f.Uint64Var(&flags.seed, "seed", 0, "seed of the jackknife groups of intervals and of the shuffled pairs of nulls")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// resolve replaces --measure by names of statistics. Without --measure, and for similarity, it
// takes the default statistics.
func (f *compareFlags) resolve(c *cobra.Command) error {
	switch {
	case len(f.measures) == 0 || slices.Equal(f.measures, []string{"similarity"}):
		f.measures = defaultStatistics()
	case slices.Equal(f.measures, []string{"all"}):
		f.measures = similarity.Names()
	case slices.Equal(f.measures, []string{"seis"}):
		f.seis.Variance = f.similarity.Variance
		return nil
	}
	alone := []string{"all", "seis", "similarity"} // these are no statistics
	known := append(slices.Clone(alone), similarity.Names()...)
	for _, name := range f.measures {
		// Some published statistics are not implemented: the error says why and what to take instead.
		if err := similarity.NotComputed(name); err != nil {
			return usagef(c, "--measure: %v", err)
		}
		if !slices.Contains(known, name) {
			return usagef(c, "--measure: unknown statistic %q: use one of %s", name, strings.Join(known, ", "))
		}
		if slices.Contains(alone, name) {
			return usagef(c, "--measure %s cannot be combined with other statistics", name)
		}
	}
	f.similarity.Statistics = f.measures
	if f.similarity.Pool != "none" && f.similarity.Pool != "mean" {
		return usagef(c, "--pool is %q: it must be none or mean", f.similarity.Pool)
	}
	return nil
}

type arrayPair [2]arrayName

// archives are the extensions of files that hold arrays by key.
var archives = []string{".npz", ".safetensors", ".parquet"}

// An arrayName is a file and, for archives, the key of an array in it.
type arrayName struct{ path, key string }

func (a arrayName) String() string {
	if a.key == "" {
		return a.path
	}
	return a.path + ":" + a.key
}

// parseArrayName splits FILE.npz:KEY and the like, unless there is a file of that name.
func parseArrayName(arg string) arrayName {
	if _, err := os.Stat(arg); err == nil {
		return arrayName{arg, ""}
	}
	for _, ext := range archives {
		if i := strings.LastIndex(arg, ext+":"); i >= 0 {
			return arrayName{arg[:i+len(ext)], arg[i+len(ext)+1:]}
		}
	}
	return arrayName{arg, ""}
}

// checkArrays returns an error if a file is a model instead of an array. It accepts zip archives
// and HDF5 files, which may hold either.
func checkArrays(args []string) error {
	for _, path := range args {
		arrays := slices.Contains(append([]string{".h5", ".hdf5"}, archives...), strings.ToLower(filepath.Ext(path)))
		if err := onnx.Foreign(path); err != nil && !arrays {
			return fmt.Errorf("compare takes arrays (.npy, .npz, .safetensors, .parquet), such as activations written by numpy.save; two networks are compared by a study (noether init) once they are ONNX files: %s %w", path, err)
		}
		if filepath.Ext(path) == ".onnx" {
			return fmt.Errorf("compare takes arrays (.npy, .npz, .safetensors, .parquet), and %s is a network: write a study (noether init) with both models and the measure similarity: {between: all}", path)
		}
	}
	return nil
}

// arrayPairs pairs the arguments two by two; a single archive has all pairs of its arrays.
func arrayPairs(ctx context.Context, args []string) ([]arrayPair, error) {
	if len(args) == 1 && !slices.Contains(archives, filepath.Ext(args[0])) {
		return nil, nil
	}
	if len(args) == 1 {
		keys, err := dataset.ArrayKeys(ctx, args[0])
		if err != nil {
			return nil, err
		}
		var pairs []arrayPair
		for i, a := range keys {
			for _, b := range keys[i+1:] {
				pairs = append(pairs, arrayPair{{args[0], a}, {args[0], b}})
			}
		}
		return pairs, nil
	}
	if len(args)%2 == 1 {
		return nil, nil
	}
	var pairs []arrayPair
	for i := 0; i < len(args); i += 2 {
		pairs = append(pairs, arrayPair{parseArrayName(args[i]), parseArrayName(args[i+1])})
	}
	return pairs, nil
}

func (f *compareFlags) compare(ctx context.Context, p arrayPair) (scores.Cell, error) {
	cell := scores.Cell{Model: p[0].String(), OtherModel: p[1].String(), Measure: "similarity"}
	compute := f.compareSimilarity
	if slices.Equal(f.measures, []string{"seis"}) {
		cell.Measure, compute = "seis", f.compareSEIS
	}
	found, err := compute(ctx, p)
	cell.Layers = []scores.Layer{{Depth: scores.NoDepth, Scores: found}}
	return cell, err
}

// compareSEIS reads both arrays whole, a layer's activations on inputs x and on T(x).
func (f *compareFlags) compareSEIS(ctx context.Context, p arrayPair) ([]measure.Score, error) {
	z, err := dataset.ReadArray(ctx, p[0].path, p[0].key)
	if err != nil {
		return nil, err
	}
	zt, err := dataset.ReadArray(ctx, p[1].path, p[1].key)
	if err != nil {
		return nil, err
	}
	return seis.Compare(z, zt, f.seis)
}

// compareSimilarity reads arrays as far as memory allows, and computes statistics of similarity.
func (f *compareFlags) compareSimilarity(ctx context.Context, p arrayPair) ([]measure.Score, error) {
	memory, err := spec.ParseSize(f.memory)
	if err != nil {
		return nil, fmt.Errorf("--memory: %w", err)
	}
	debug.SetMemoryLimit(int64(memory)) // the garbage collector works harder near the limit
	var sources [2]similarity.Source
	for i, name := range p {
		a, err := dataset.OpenArrayFile(ctx, name.path, name.key)
		if err != nil {
			return nil, err
		}
		defer a.Close()
		if sources[i], err = arraySource(a, f.similarity.Pool == "mean"); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return similarity.Compare(ctx, sources[0], sources[1], similarity.Options{
		Settings: f.similarity, Memory: int64(memory), Seed: f.seed, Names: [2]string{p[0].String(), p[1].String()},
	})
}

func printComparisons(cells []scores.Cell, asJSON bool) error {
	if asJSON {
		rows := []scores.Row{}
		for _, c := range cells {
			rows = append(rows, c.Rows("compare")...) // in place of a study's name
		}
		return printJSON(rows)
	}
	for i, c := range cells {
		if len(cells) > 1 {
			if i > 0 {
				fmt.Fprintln(stdout)
			}
			fmt.Fprintf(stdout, "%s and %s\n", c.Model, c.OtherModel)
		}
		printComparison(stdout, c.Layers[0].Scores, terminalWidth(os.Stdout))
	}
	return nil
}

// printComparison prints a row for each statistic. width is that of the table; 0 is no limit.
func printComparison(w io.Writer, found []measure.Score, width int) {
	t := textTable{header: []string{"statistic", "value", "low", "high", "null", "n"}}
	var warnings []string
	for _, s := range found {
		name := s.Statistic
		if s.Variant != "" {
			name += " (" + s.Variant + ")"
		}
		t.rows = append(t.rows, []string{name, digits(s.Value), digits(s.Low), digits(s.High), digits(s.Null), strconv.Itoa(s.N)})
		for _, text := range s.Warnings {
			warnings = append(warnings, s.Statistic+": "+text)
		}
	}
	t.align(1, 2, 3, 4, 5)
	fmt.Fprint(w, t.write(width, 0))
	for _, text := range joinWarnings(warnings) {
		printFolded(w, width, "warning: %s", text)
	}
}

// joinWarnings joins warnings "subject: text" that have the same text.
func joinWarnings(warnings []string) []string {
	var order []string
	subjects := map[string][]string{}
	for _, w := range warnings {
		name, text, _ := strings.Cut(w, ": ")
		if subjects[text] == nil {
			order = append(order, text)
		}
		subjects[text] = append(subjects[text], name)
	}
	var out []string
	for _, text := range order {
		out = append(out, strings.Join(subjects[text], ", ")+": "+text)
	}
	return out
}

// digits writes a value with six digits, "" for NaN.
func digits(v float64) string {
	if v != v {
		return ""
	}
	return fmt.Sprintf("%.6g", v)
}
