package spec

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/noether-ml/noether/internal/checksum"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/transform"
)

// A Study is a study file: which models are measured on which data, under which transformations, by
// which measures. The keys are a public contract; see docs/reference/study-file.md.
type Study struct {
	Name        string        `key:"name,required" doc:"name of the study; a column of the scores"`
	Description string        `key:"description" doc:"what the study is for: text that the report shows, with empty lines between paragraphs"`
	Seed        uint64        `key:"seed" default:"1" doc:"seed of every random draw, except those of data entries with a seed of their own"`
	Data        []Data        `key:"data,required" doc:"data sets; each model is measured on each"`
	Models      []Model       `key:"models,required" doc:"models; each is measured on each data set"`
	Transforms  []Transform   `key:"transforms" doc:"transformations of the input, or of feature maps"`
	Measures    []MeasureSpec `key:"measures,required" doc:"what to measure; a name, or a name with settings"`
	Scales      config.Scales `key:"scales" doc:"keys of this file that have other values at a scale, with dots between nested keys: {paper: {data.limit: 10000}}. The variable SCALE names the scale"`
	Trials      int           `key:"trials" default:"1" min:"1" doc:"independent repetitions of every random draw"`
	Samples     bool          `key:"samples" doc:"keep the values of all samples and all layers in samples.parquet. Otherwise it has those of the first 500 samples of each data set, for predictions and the last layer"`
	By          []string      `key:"by" doc:"properties of samples, such as site: scores of predictions and of the last layer are also computed for the samples of each of their values. Factors of the data (columns of the file of labels), label, and brightness, contrast, sharpness and size of images; numbers of more than eight values are divided into quarters"`
	Images      int           `key:"pictures" min:"0" max:"24" default:"6" doc:"number of samples that the report shows, clean and under each transformation"`
	Batch       int           `key:"batch" min:"1" doc:"samples in one call of ONNX Runtime; chosen by the memory if not given. Scores do not depend on it"`
	Executable  string        `key:"python" doc:"Python interpreter of the functions that the study names; default: that of the environment variable NOETHER_PYTHON_EXECUTABLE, else python3"`
	PythonPath  []Path        `key:"python-path" doc:"folders in which the modules of these functions are looked for before the installed ones; default: that of the study file"`
	Memory      Size          `key:"memory" doc:"bytes that the running sums of measures (accumulators) may hold, for instance 512MiB: those of one layer, and those of all that is measured in one pass over the data. If not given: 256MiB for a layer, and for a pass a quarter of the free memory if that is more"`

	memorySet bool              // the study or SetMemory has set Memory
	imagesSet bool              // the study has set Images
	path      string            // of the study file; relative paths are relative to its folder
	node      *config.Node      // the file as it was read
	lists     Lists             // what the file can name
	pinned    map[string]string // for an address on the Hugging Face hub in the study: the address with the commit that was downloaded
}

// Lists are what a study file can name.
type Lists struct {
	Measures   []Family
	Transforms []transform.Kind
	Data       []DataKind
	Engines    []Engine
}

// DefaultMemory is the default bound on the memory of accumulators, in bytes.
const DefaultMemory = 256 << 20

// maxCells is the largest number of cells of a study. A larger number is usually a mistake in a
// list of values.
const maxCells = 100_000

// Load reads a study file. vars are looked up before the environment for ${NAME} in the file.
func Load(path string, vars map[string]string, lists Lists) (*Study, error) {
	data, err := config.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the study: %w", err)
	}
	if _, err := checksum.Check(string(data)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return Parse(path, data, vars, lists)
}

// Parse reads the text of a study file. Relative paths are relative to the folder of path, which
// errors name.
func Parse(path string, data []byte, vars map[string]string, lists Lists) (*Study, error) {
	node, err := config.ParseScaled(path, data, vars)
	if err != nil {
		return nil, err
	}
	// An entry of data may list several corruptions, and one of models several files or the
	// checkpoints of a training: each becomes an entry of its own.
	if err := expandBenchmarks(node, filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := expandCorruptions(node); err != nil {
		return nil, err
	}
	s := &Study{path: path, node: node, lists: lists}
	if err := s.expandLists(); err != nil {
		return nil, err
	}
	if err := s.expandCheckpoints(); err != nil {
		return nil, err
	}
	if err := config.Decode(node, s); err != nil {
		return nil, err
	}
	for i := range s.Data {
		if err := s.Data[i].Decode(lists.Data); err != nil {
			return nil, err
		}
	}
	for i := range s.Transforms {
		if err := s.Transforms[i].Decode(lists.Transforms); err != nil {
			return nil, err
		}
	}
	for i := range s.Measures {
		if err := s.Measures[i].Decode(lists.Measures); err != nil {
			return nil, err
		}
	}
	for i := range s.Models {
		s.Models[i].node = entryNode(node.Get("models"), i)
	}
	s.memorySet, s.imagesSet = s.Memory != 0, node.Get("pictures") != nil
	s.Memory = cmp.Or(s.Memory, DefaultMemory)
	return s, s.check(node)
}

// SetMemory sets the bound on the memory of accumulators.
func (s *Study) SetMemory(bytes Size) { s.Memory, s.memorySet = bytes, true }

// BoundsMemory reports whether the study sets a bound on the memory of accumulators. If not, Memory
// is the default: it still decides which confidence intervals are computed, but a pass (a reading
// of the samples) may hold more.
func (s *Study) BoundsMemory() bool { return s.memorySet || s.Memory != DefaultMemory }

// KeepsSamples reports whether the values of all samples are kept, at least those of predictions
// and of the last layer.
func (s *Study) KeepsSamples() bool { return s.Samples || len(s.By) > 0 }

// AsksForImages reports whether the study itself, not the default, sets a number of images above 0.
func (s *Study) AsksForImages() bool { return s.imagesSet && s.Images > 0 }

func (s *Study) check(n *config.Node) error {
	if len(s.Data) == 0 || len(s.Models) == 0 || len(s.Measures) == 0 {
		return n.Errorf("a study needs at least one entry each of data, models and measures")
	}
	if err := checkUnique(n.Get("data"), func(i int) string { return s.Data[i].Name }, len(s.Data)); err != nil {
		return err
	}
	if err := checkUnique(n.Get("models"), func(i int) string { return s.Models[i].Name }, len(s.Models)); err != nil {
		return err
	}
	if err := checkUnique(n.Get("transforms"), func(i int) string { return s.Transforms[i].Name }, len(s.Transforms)); err != nil {
		return err
	}
	if err := checkAllUnique(n.Get("measures"), func(i int) []string { return s.Measures[i].identities() }, len(s.Measures)); err != nil {
		return err
	}
	if err := s.checkTolerances(); err != nil {
		return err
	}
	for _, m := range s.Models {
		if err := m.check(); err != nil {
			return err
		}
	}
	for _, m := range s.Measures {
		if err := m.Between.check(s.Models); err != nil {
			return err
		}
	}
	return s.checkSize(n)
}

// checkSize returns an error if the study has more than maxCells cells.
func (s *Study) checkSize(n *config.Node) error {
	values := 0
	for _, t := range s.Transforms {
		values += len(t.Cells)
	}
	var subjects float64 // models, or pairs of them, over all measures
	for _, m := range s.Measures {
		if m.Between.Given() {
			subjects += m.countPairs(len(s.Models))
		} else {
			subjects += float64(len(s.Models))
		}
	}
	cells := float64(len(s.Data)) * subjects * float64(max(1, values)) * float64(s.Trials)
	if cells > maxCells {
		return n.Errorf("this study needs %.0f cells (%d data x %.0f models or pairs of models, over all measures, x %d transformation values x %d trials); the limit is %d: shorten a list of values, or split the study",
			cells, len(s.Data), subjects, max(1, values), s.Trials, maxCells)
	}
	return nil
}

// checkUnique returns an error if two of the first count entries of a list have the same name.
func checkUnique(n *config.Node, name func(int) string, count int) error {
	return checkAllUnique(n, func(i int) []string { return []string{name(i)} }, count)
}

// checkAllUnique is checkUnique for entries that have several names each: all names of all entries
// must differ.
func checkAllUnique(n *config.Node, names func(int) []string, count int) error {
	seen := map[string]bool{}
	for i := range count {
		for _, name := range names(i) {
			if seen[name] {
				return entryNode(n, i).Errorf("the name %q occurs twice", name)
			}
			seen[name] = true
		}
	}
	return nil
}

// entryNode returns entry i of a list, or n itself if it is not a list: a list of one entry may be
// written as the entry.
func entryNode(n *config.Node, i int) *config.Node {
	if n.Kind == config.List {
		return n.Items[i]
	}
	return n
}

// Resolve converts a path relative to the study file to one relative to the working directory.
func (s *Study) Resolve(path string) string { return Resolve(filepath.Dir(s.path), path) }

// Resolve converts a path relative to a folder to one relative to the working directory. It expands
// a leading ~/ and leaves URLs and absolute paths as they are.
func Resolve(folder, path string) string {
	if strings.HasPrefix(path, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, path[2:])
		}
	}
	if filepath.IsAbs(path) || uri.IsURL(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// A Size is a number of bytes; in YAML a number, or text such as 512MiB.
type Size int64

// DecodeNode implements config.Decoder.
func (s *Size) DecodeNode(n *config.Node) error {
	text, err := n.Scalar()
	if err != nil {
		return err
	}
	v, err := ParseSize(text)
	if err != nil {
		return n.Errorf("%w", err)
	}
	*s = v
	return nil
}

// JSONSchema implements config.Schemer.
func (Size) JSONSchema() map[string]any {
	return map[string]any{"type": []string{"integer", "string"}, "pattern": `^[0-9]+(\.[0-9]+)?\s*([KMGT]i?B|B)?$`}
}

var sizeUnit = regexp.MustCompile(`[KMGT]?i?B$`)

// ParseSize reads a number of bytes, from 1 to 2^50, with an optional unit: B, KB, MB, GB, TB
// (powers of 1000), KiB, MiB, GiB, TiB.
func ParseSize(text string) (Size, error) {
	var number float64
	var unit string
	var rest string
	if k, _ := fmt.Sscan(strings.TrimSpace(sizeUnit.ReplaceAllString(text, " $0")), &number, &unit, &rest); k < 1 || k > 2 {
		return 0, fmt.Errorf("%q is not a size: write 512MiB, for example", text)
	}
	factor, ok := map[string]float64{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[unit]
	if !ok || !(number*factor >= 1) || number*factor > 1<<50 {
		return 0, fmt.Errorf("%q is not a size: write 512MiB, for example", text)
	}
	return Size(number * factor), nil
}
