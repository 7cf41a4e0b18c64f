package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
)

// Images of a model are PNG files in the folder MODEL.pictures beside MODEL.onnx; JSON files of the
// same names may hold title and caption. A run copies them for the report.

const (
	modelImageFolder = "pictures/models" // in the run folder
	maxModelImages   = 60                // images of one model
	maxImageBytes    = 4 << 20           // of one image
)

func (r *Writer) copyModelImages() error {
	if r.archive == nil {
		if err := filesys.RemoveAll(r.Folder.Path(modelImageFolder)); err != nil {
			return err
		}
	}
	return r.modelImages(func(p picture) error { return r.writeAll([]picture{p}) })
}

// modelImages calls add for each image of each model, and before it for the image's caption with
// the model's name.
func (r *Writer) modelImages(add func(picture) error) error {
	for _, m := range r.Plan.Models {
		dir := strings.TrimSuffix(m.Net.Path(), filepath.Ext(m.Net.Path())) + ".pictures"
		files, err := fs.Glob(os.DirFS(dir), "*.png")
		if err != nil {
			return err
		}
		for _, file := range files[:min(len(files), maxModelImages)] {
			if err := modelImage(m.Entry.Name, filepath.Join(dir, file), add); err != nil {
				return fmt.Errorf("the images of model %s: %w", m.Entry.Name, err)
			}
		}
	}
	return nil
}

// modelImage calls add for the caption of an image and for the image, unless it is too large for a
// report.
func modelImage(model, file string, add func(picture) error) error {
	if info, err := os.Stat(file); err != nil || info.Size() > maxImageBytes {
		return err
	}
	png, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(file), ".png")
	text := map[string]string{"title": name + " of " + model}
	raw, err := os.ReadFile(strings.TrimSuffix(file, ".png") + ".json")
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		var caption map[string]string
		if err := json.Unmarshal(raw, &caption); err != nil {
			return fmt.Errorf("reading the caption of %s: %w", file, err)
		}
		maps.Copy(text, caption)
	}
	text["model"] = model
	caption, err := json.Marshal(text)
	if err != nil {
		return err
	}
	to := fmt.Sprintf("%s/%s-%s", modelImageFolder, fileNameOf(model), name)
	return errors.Join(add(picture{to + ".json", append(caption, '\n')}), add(picture{to + ".png", png}))
}

// fileNameOf replaces the characters that file names cannot have on some system by hyphens.
func fileNameOf(name string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, c) {
			return '-'
		}
		return c
	}, name)
}
