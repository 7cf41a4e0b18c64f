package spec

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/internal/filesys"
)

// Names of files and folders that noether train writes, and that an entry of models with the key
// checkpoints reads. All but RunsFile are in the folder of one training.
const (
	TrainedModelFile = "model.onnx"
	SummaryFile      = "summary.json"
	EpochsFolder     = "epochs"   // networks of single epochs, such as 007.onnx
	RunsFile         = "runs.csv" // in a folder of several trainings: a row for each, whose first field is its subfolder
)

// maxListBytes is the largest number of bytes that are read of a RunsFile or a SummaryFile.
const maxListBytes = 64 << 20

// checkpointKeys are the keys of an entry of models that stands for the networks of trainings.
type checkpointKeys struct {
	Folder string `key:"checkpoints,required"` // of one training, or of several with a RunsFile
	Every  int    `key:"every" min:"1"`        // take the networks of epoch 1 and of multiples of Every; 0: the final network
}

type checkpoint struct {
	path  string // relative to the folder of the training
	epoch int
}

// expandCheckpoints replaces every entry of models with the key checkpoints by an entry for each
// network.
func (s *Study) expandCheckpoints() error {
	return s.expandModels(func(entry *config.Node) ([]*config.Node, error) {
		switch {
		case entry.Get("checkpoints") != nil:
			return s.expandTrainings(entry)
		case entry.Get("every") != nil:
			return nil, entry.Get("every").Errorf("every needs checkpoints: the folder of a training")
		}
		return nil, nil
	})
}

// expandTrainings returns an entry for each network of the trainings in a folder.
func (s *Study) expandTrainings(entry *config.Node) ([]*config.Node, error) {
	at := entry.Get("checkpoints")
	for _, key := range []string{"onnx", "activations", "sha256"} {
		if n := entry.Get(key); n != nil {
			return nil, n.Errorf("the networks of an entry with checkpoints are those in its folder: leave out %s", key)
		}
	}
	var keys checkpointKeys
	given := &config.Node{Kind: config.Map}
	for _, p := range entry.Pairs {
		if p.Key.Text == "checkpoints" || p.Key.Text == "every" {
			given.Pairs = append(given.Pairs, p)
		}
	}
	if err := config.Decode(given, &keys); err != nil {
		return nil, err
	}
	if uri.IsURL(keys.Folder) {
		return nil, at.Errorf("checkpoints is a folder that noether train has written, not a URL")
	}
	runs, err := trainingsIn(s.Resolve(keys.Folder))
	if err != nil {
		return nil, at.Errorf("%w", err)
	}
	var out []*config.Node
	for _, run := range runs {
		list, err := s.expandTraining(entry, keys, run)
		if err != nil {
			return nil, at.Errorf("%w", err)
		}
		out = append(out, list...)
	}
	return out, nil
}

// expandTraining returns an entry for each network of one training: that in the subfolder run of
// keys.Folder, or in keys.Folder itself if run is "".
func (s *Study) expandTraining(entry *config.Node, keys checkpointKeys, run string) ([]*config.Node, error) {
	folder := filepath.Join(keys.Folder, run)
	kept, tags, err := readTraining(s.Resolve(folder))
	if err != nil {
		return nil, err
	}
	networks := []checkpoint{{TrainedModelFile, kept}}
	if keys.Every > 0 {
		if networks, err = checkpointsIn(s.Resolve(folder), keys.Every); err != nil {
			return nil, err
		}
	}
	name := filepath.Base(s.Resolve(keys.Folder))
	if n := entry.Get("name"); n != nil {
		name = n.Text
	}
	if run != "" {
		name += "/" + run
	}
	var out []*config.Node
	for _, c := range networks {
		one := entry.Clone()
		one.Pairs = nil
		one.Set("name", name)
		if keys.Every > 0 {
			one.Set("name", fmt.Sprintf("%s/epoch-%d", name, c.epoch))
		}
		one.Set("onnx", filepath.Join(folder, c.path))
		for _, p := range entry.Clone().Pairs {
			if !slices.Contains([]string{"name", "checkpoints", "every", "tags"}, p.Key.Text) {
				one.Pairs = append(one.Pairs, p)
			}
		}
		one.Pairs = append(one.Pairs, config.Pair{Key: text("tags"), Value: tagsOf(entry.Get("tags"), name, c.epoch, tags)})
		out = append(out, one)
	}
	return out, nil
}

// tagsOf returns the tags (properties by name) of a network: those of the entry (given), then run,
// epoch and those of the training (tags). Of two tags with the same key it takes the first.
func tagsOf(given *config.Node, run string, epoch int, tags map[string]string) *config.Node {
	out := &config.Node{Kind: config.Map}
	if given != nil {
		out = given.Clone()
	}
	if out.Kind != config.Map {
		return out // not a mapping: the decoder of the entry reports it
	}
	if out.Get("run") == nil {
		out.Set("run", run)
	}
	if out.Get("epoch") == nil {
		out.SetInt("epoch", int64(epoch))
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if out.Get(key) == nil {
			out.Set(key, tags[key])
		}
	}
	return out
}

// trainingsIn returns the subfolders of the trainings in a folder; "" stands for the folder itself.
func trainingsIn(folder string) ([]string, error) {
	file, err := filesys.Open(filepath.Join(folder, RunsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return []string{""}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := csv.NewReader(io.LimitReader(file, maxListBytes)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file.Name(), err)
	}
	var out []string
	for i, row := range rows {
		if i > 0 {
			out = append(out, row[0])
		}
	}
	if len(out) == 0 || rows[0][0] != "run" || slices.ContainsFunc(out, func(run string) bool { return !filepath.IsLocal(run) }) {
		return nil, fmt.Errorf("%s is not a list of trainings by noether train", file.Name())
	}
	return out, nil
}

// readTraining returns the epoch of the network that a training kept as its final one
// (TrainedModelFile), and the tags of the training.
func readTraining(folder string) (kept int, tags map[string]string, err error) {
	path := filepath.Join(folder, SummaryFile)
	file, err := filesys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, fmt.Errorf("%s has no %s: it holds no training by noether train, or one that has not finished", folder, SummaryFile)
	}
	if err != nil {
		return 0, nil, err
	}
	defer file.Close()
	var s struct {
		Kept int               `json:"kept"`
		Tags map[string]string `json:"tags"`
	}
	if err := json.NewDecoder(io.LimitReader(file, maxListBytes)).Decode(&s); err != nil {
		return 0, nil, fmt.Errorf("%s is not the summary of a training: %w", path, err)
	}
	if s.Kept < 1 {
		return 0, nil, fmt.Errorf("%s is not the summary of a training: it names no epoch", path)
	}
	return s.Kept, s.Tags, nil
}

// checkpointsIn returns the networks that a training has saved of epoch 1 and of the epochs that
// every divides.
func checkpointsIn(folder string, every int) ([]checkpoint, error) {
	files, err := os.ReadDir(filepath.Join(folder, EpochsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []checkpoint
	for _, f := range files {
		number, isNetwork := strings.CutSuffix(f.Name(), ".onnx")
		epoch, err := strconv.Atoi(number)
		if isNetwork && err == nil && (epoch == 1 || epoch > 0 && epoch%every == 0) {
			out = append(out, checkpoint{filepath.Join(EpochsFolder, f.Name()), epoch})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no networks of epoch 1 or of multiples of %d: train with save-every, or leave out every for the final network", folder, every)
	}
	slices.SortFunc(out, func(a, b checkpoint) int { return a.epoch - b.epoch })
	return out, nil
}
