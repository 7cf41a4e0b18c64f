// Stir writes the tables of docs/results/stir.md. It reads the scores of the runs of the studies
// stir-*.yaml and the test accuracies of the trained networks:
//
//	go run ./papers/stir -runs runs -networks networks
//
// The independent observations of every interval are pairs of networks, and no network belongs to
// two pairs of one row. A pair's value is the mean over trials (equation 6 of Nanda et al. 2022),
// and over both directions if the two networks are of one kind: kinds differ in more than the seed.
// Rows whose runs or trainings are missing stay as they were.
//
// STIR(m2 given m1) compares, in m2, images x and x' with the same representation in m1, the
// reference. For adversarial STIR the search for x' also maximises the distance of x and x' in m2.
// Controversial images are the x' of such a search that starts from x. An image is missed if the
// search does not reach the representation of x in m1. Agreement is the fraction of the x' for
// which m1 and m2 predict the same class. CKA compares the representations of x itself in m1 and
// m2.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/noether-ml/noether/papers/internal/tablefile"
)

func main() { tablefile.Main("stir", run) }

func run(args []string, _ io.Writer) error {
	flags := flag.NewFlagSet("stir", flag.ContinueOnError)
	runs := flags.String("runs", "runs", "the folder with the runs stir-seeds, stir-layers and so on")
	networks := flags.String("networks", "networks", "the folder with the trainings stir, stir-defences and so on")
	out := flags.String("out", "papers/results", "the folder of the tables")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return write(*runs, *networks, *out)
}

// write writes a table for each experiment, stir-findings.csv and stir-networks.csv.
func write(runs, networks, out string) error {
	all := map[string]groups{}
	for _, e := range tables.Experiments {
		rows, err := tablefile.ReadScores(filepath.Join(runs, e.Name, "scores.csv"))
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Println("no run", e.Name)
			continue
		}
		g := groups{}
		if err == nil {
			err = g.add(rows)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		all[e.Name] = g
		if err := tablefile.Write(filepath.Join(out, e.Name+".csv"), e.rows(g)); err != nil {
			return err
		}
	}
	rewrite := func(name string, rows func(stored [][]string) ([][]string, error)) error {
		path := filepath.Join(out, name)
		stored, err := tablefile.Read(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		table, err := rows(stored)
		if err != nil {
			return err
		}
		return tablefile.Write(path, table)
	}
	err := rewrite("stir-findings.csv", func(stored [][]string) ([][]string, error) { return findingRows(all, stored), nil })
	if err != nil {
		return err
	}
	return rewrite("stir-networks.csv", func(stored [][]string) ([][]string, error) { return networkRows(networks, stored) })
}

// beginning returns the rows of a table that begin with the given cells.
func beginning(rows [][]string, cells ...string) [][]string {
	return slices.DeleteFunc(slices.Clone(rows), func(r []string) bool { return !slices.Equal(r[:len(cells)], cells) })
}

// tables describes the tables; see tables/tables.yaml.
var tables = func() (out struct {
	Columns     map[string]column
	Experiments []experiment
	Kinds       [][2]string // of networks: as named in the studies, and in the tables
	Findings    []finding
}) {
	if err := yaml.UnmarshalStrict(tablesText, &out); err != nil {
		panic(err)
	}
	return out
}()

//go:embed tables/tables.yaml
var tablesText []byte

// An experiment is a table of docs/results/stir.md, and the run of the same name. A group of its
// scores is one row: the kinds of the reference and the other network, and the layer.
type experiment struct {
	Name    string
	Images  int  // of a trial
	Layers  bool // a row for each layer
	Single  bool // its groups are of single networks
	Columns []string
}

// A column is a statistic of the measure stir. If Chance is set, it shows the null of the statistic
// instead of its value; if Interval is set, the interval too.
type column struct {
	Title, Statistic, Variant string
	Chance, Interval          bool
	Low                       float64 // smallest possible value
	Unbounded                 bool    // the largest possible value is not 1
	Missed                    string  // column with the fraction of images that the inversion missed; "": none
}

// rows returns the table of an experiment, in the layout that package papers/results reads.
func (e experiment) rows(g groups) [][]string {
	head := []string{"reference", "other"}
	if e.Single {
		head = []string{"networks"}
	}
	if e.Layers {
		head = append(head, "layer")
	}
	out := [][]string{append(slices.Clone(head), "statistic", "value", "low", "high")}
	for _, k := range g.sorted() {
		names := []string{title(k.reference), title(k.other)}
		if e.Single {
			names = names[:1]
		}
		if e.Layers {
			names = append(names, layerTitle(k.layer))
		}
		for _, name := range e.Columns {
			c := tables.Columns[name]
			v := g[k].values(c)
			if len(v) == 0 {
				continue
			}
			value, low, high := tablefile.Interval(v)
			cells := tablefile.Cells("%.2f", value, math.NaN(), math.NaN())
			if c.Interval {
				if !c.Unbounded {
					high = min(high, 1)
				}
				cells = tablefile.Cells("%.3f", value, max(low, c.Low), high)
			}
			out = append(out, slices.Concat(names, []string{c.Title}, cells))
		}
	}
	return out
}
