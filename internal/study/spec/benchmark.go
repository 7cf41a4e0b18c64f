package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/benchmark"
	"github.com/noether-ml/noether/internal/config"
)

// Benchmark is the value of the key benchmark: the data sets of a published benchmark, each of
// which becomes an entry of its own. An entry of one data set has Kind.
type Benchmark struct {
	Name        string   `key:"name,required" short:"true" doc:"imagenet-c, imagenet-p, imagenet-3dcc, imagenet-a, imagenet-r, imagenet-sketch, imagenet-v2, objectnet, laion-c, cifar-10-c, cifar-100-c or coco-c"`
	Path        string   `key:"path" doc:"folder of the benchmark as published. Without it, the clean images are corrupted here"`
	Clean       string   `key:"clean" doc:"the images without a corruption or a shift: a folder of ImageNet's validation images, CIFAR's test_batch.bin or its folder, or COCO's folder of images"`
	Labels      string   `key:"labels" doc:"file of the labels of clean, if its folders do not state them"`
	Annotations string   `key:"annotations" doc:"coco-c: COCO's file of annotations"`
	Kinds       []string `key:"kinds" doc:"corruptions; default: those of the published mean"`
	Severities  []int    `key:"severities" doc:"severities; default: all"`

	Kind     string `key:"kind" doc:"of one data set, as a run writes it: its corruption, clean or shifted"`
	Severity int    `key:"severity" doc:"of one data set, as a run writes it"`
	Own      bool   `key:"own" doc:"of one data set, as a run writes it: the corruption is computed here, and not the published images"`
}

// expandBenchmarks replaces every entry of data with a benchmark by one for each of its data sets.
// dir is the folder of the study file.
func expandBenchmarks(study *config.Node, dir string) error {
	data := study.Get("data")
	if data == nil {
		return nil
	}
	entries := data.Items
	if data.Kind == config.Map {
		entries = []*config.Node{data.Clone()}
	}
	var out []*config.Node
	expanded := false
	for _, entry := range entries {
		node := entry.Get("benchmark")
		if node == nil {
			out = append(out, entry)
			continue
		}
		var b Benchmark
		if err := config.Decode(node, &b); err != nil {
			return err
		}
		if b.Kind != "" { // a run has expanded it
			out = append(out, entry)
			continue
		}
		sets, err := b.expand(entry, node, dir)
		if err != nil {
			return err
		}
		out, expanded = append(out, sets...), true
	}
	if expanded {
		data.Kind, data.Items, data.Pairs = config.List, out, nil
	}
	return nil
}

// expand returns an entry of data for each data set of the benchmark, the clean one first.
func (b *Benchmark) expand(entry, node *config.Node, dir string) ([]*config.Node, error) {
	known, err := benchmark.Find(b.Name)
	if err != nil {
		return nil, node.Errorf("%v", err)
	}
	if err := b.complete(known, node); err != nil {
		return nil, err
	}
	var out []*config.Node
	add := func(kind string, severity int, own bool) *config.Node {
		e := entry.Clone()
		e.Pairs = slices.DeleteFunc(e.Pairs, func(p config.Pair) bool { return p.Key.Text == "benchmark" })
		suffix := kind
		if severity > 0 {
			suffix = fmt.Sprintf("%s-%d", kind, severity)
		}
		if name := entry.Get("name"); name != nil {
			e.Set("name", name.Text+"/"+suffix)
		}
		mark := mapOf(node, "name", b.Name, "kind", kind)
		if severity > 0 {
			mark.SetInt("severity", int64(severity))
		}
		if own {
			mark.SetNode("own", &config.Node{Kind: config.Bool, Bool: true, Text: "true"})
		}
		e.SetNode("benchmark", mark)
		out = append(out, e)
		return e
	}
	if b.Clean != "" {
		b.setClean(known, add(benchmark.Clean, 0, false), node)
	}
	var missing []string
	for _, name := range b.Kinds {
		kind, _ := known.Kind(name)
		for _, severity := range b.Severities {
			own := b.Path == ""
			e := add(name, severity, own)
			if own {
				b.setClean(known, e, node)
				corrupt := mapOf(node, "kinds", name)
				corrupt.SetInt("severities", int64(severity))
				e.SetNode("corrupt", corrupt)
				continue
			}
			absent, err := b.setPublished(known, kind, severity, e, node, dir)
			if err != nil {
				return nil, err
			}
			if absent != "" {
				missing = append(missing, absent)
			}
		}
	}
	switch all := len(b.Kinds) * len(b.Severities); {
	case len(missing) == all:
		return nil, node.Errorf("%s: there is no %s: path is the folder that holds the published ones", b.Name, missing[0])
	case len(missing) > 0:
		return nil, node.Errorf("%s: %d of %d folders are missing, the first is %s: complete the copy, or leave them out by kinds and severities", b.Name, len(missing), all, missing[0])
	}
	return out, nil
}

// complete fills in defaults, and checks the keys.
func (b *Benchmark) complete(known benchmark.Benchmark, node *config.Node) error {
	switch {
	case b.Path == "" && b.Clean == "":
		return node.Errorf("%s needs path, the folder of the benchmark as published, or clean, the images that are corrupted here", b.Name)
	case b.Path == "" && !known.Own:
		return node.Errorf("%s needs path: other images than the published ones cannot stand for it", b.Name)
	case (known.Present || known.Groups != nil) && b.Clean != "":
		return node.Errorf("%s has %d classes, and clean would be of ImageNet's 1,000: leave it out, and measure it as an entry of its own", b.Name, known.Classes)
	case known.Layout == benchmark.Sequences && b.Clean != "":
		return node.Errorf("%s compares the frames of sequences and has no clean images: leave out clean", b.Name)
	case known.Layout == benchmark.COCO && b.Path != "":
		return node.Errorf("%s is not published as images: leave out path, and set clean and annotations", b.Name)
	case known.Layout == benchmark.COCO && b.Annotations == "":
		return node.Errorf("%s needs annotations, COCO's file of boxes", b.Name)
	case known.Layout != benchmark.COCO && b.Annotations != "":
		return node.Errorf("%s has no annotations: they are for coco-c", b.Name)
	}
	if len(b.Kinds) == 0 {
		b.Kinds = known.Standard()
	}
	for _, name := range b.Kinds {
		k, ok := known.Kind(name)
		var names []string
		for _, k := range known.Kinds {
			names = append(names, k.Name)
		}
		switch {
		case !ok:
			return node.Errorf("%s has no kind %q: it has %s", b.Name, name, strings.Join(names, ", "))
		case k.Extra && b.Path == "":
			return node.Errorf("%s cannot be computed here: set path, or leave it out of kinds", name)
		}
	}
	if len(b.Severities) == 0 {
		b.Severities = known.Severities
	}
	for _, s := range b.Severities {
		if !slices.Contains(known.Severities, s) {
			return node.Errorf("the severity of %s is %d: it must be one of %v", b.Name, s, known.Severities)
		}
	}
	return nil
}

// setClean sets the source of an entry to the clean data.
func (b *Benchmark) setClean(known benchmark.Benchmark, e, node *config.Node) {
	switch known.Layout {
	case benchmark.Stacked:
		e.Set(strings.ReplaceAll(strings.TrimSuffix(b.Name, "-c"), "-", ""), b.Clean) // cifar10, cifar100
	case benchmark.COCO:
		e.SetNode("coco", mapOf(node, "annotations", b.Annotations, "images", b.Clean))
	default:
		if b.Labels == "" {
			e.Set("images", b.Clean)
		} else {
			e.SetNode("images", mapOf(node, "folder", b.Clean, "labels", b.Labels))
		}
	}
}

// setPublished sets the source of an entry to published files. If their folder does not exist, it
// returns the ones that it looked for.
func (b *Benchmark) setPublished(known benchmark.Benchmark, k benchmark.Kind, severity int, e, node *config.Node, dir string) (absent string, err error) {
	_, here := os.Stat(resolve(b.Path, dir))
	isHere := here == nil // else opening the data says that it is not
	switch known.Layout {
	case benchmark.Stacked:
		e.SetNode("arrays", mapOf(node, "inputs", filepath.Join(b.Path, k.Folder()+".npy"), "labels", filepath.Join(b.Path, "labels.npy")))
		return "", nil
	case benchmark.Single:
		path := filepath.Join(b.Path, known.Inside)
		if _, err := os.Stat(resolve(path, dir)); err != nil && isHere {
			return path, nil
		}
		e.Set("images", path)
		switch {
		case known.Present:
			e.SetNode("classes", listOf(node, []string{"present"}))
		case known.Numbered && isHere:
			numbers, err := numberedFolders(resolve(b.Path, dir))
			if err != nil {
				return "", node.Errorf("%s: %v", b.Name, err)
			}
			e.SetNode("classes", listOf(node, numbers))
		}
		return "", nil
	}
	source := "images"
	if known.Layout == benchmark.Sequences {
		source = "sequences"
	}
	var tried []string
	for _, folder := range known.Folders {
		path := filepath.Join(b.Path, filepath.FromSlash(known.Path(folder, k, severity)))
		if _, err := os.Stat(resolve(path, dir)); err == nil || !isHere {
			e.Set(source, path)
			return "", nil
		}
		tried = append(tried, path)
	}
	return strings.Join(tried, " and no "), nil
}

func resolve(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// numberedClasses is the number of classes of a benchmark whose folders have numbers.
const numberedClasses = 1000

// numberedFolders returns the names of folders, which are indices of classes, sorted as text.
func numberedFolders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if _, err := strconv.Atoi(e.Name()); err != nil {
			return nil, fmt.Errorf("%s has the folder %s, whose name is not the number of a class", dir, e.Name())
		}
		out = append(out, e.Name())
	}
	if len(out) != numberedClasses {
		return nil, fmt.Errorf("%s has %d folders of classes, and the benchmark %d: the copy is incomplete", dir, len(out), numberedClasses)
	}
	return out, nil
}

// mapOf returns a map of texts at the position of node.
func mapOf(node *config.Node, pairs ...string) *config.Node {
	out := node.Clone()
	out.Kind, out.Items, out.Pairs = config.Map, nil, nil
	for i := 0; i < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}

// listOf returns a list of texts at the position of node.
func listOf(node *config.Node, texts []string) *config.Node {
	list := mapOf(node)
	list.Kind = config.List
	for _, text := range texts {
		item := mapOf(node)
		item.Kind, item.Text = config.String, text
		list.Items = append(list.Items, item)
	}
	return list
}
