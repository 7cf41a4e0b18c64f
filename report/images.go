package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// An Image is a contact sheet for a report: inputs beside their transforms, inversions, filters,
// gratings.
type Image struct {
	ImageText
	Width, Height int
	PNG           []byte
}

// A ImageText is what the file NAME.json beside an image NAME.png says of it. All of it may be
// absent.
type ImageText struct {
	Title   string `json:"title"`
	Caption string `json:"caption"` // one or two sentences: what is to be seen
	Alt     string `json:"alt"`     // for those who do not see it; else the caption
	Measure string `json:"measure"` // that it belongs to
	Model   string `json:"model"`   // that it was made with
}

// Bounds of what a page holds in images.
const (
	mostImages     = 60
	mostImageBytes = 4 << 20  // of one
	allImageBytes  = 12 << 20 // of all
	mostPixels     = 50e6     // of one
)

// readImages reads the images of a run folder, pictures/*.png and pictures/*/*.png, in the order of
// their names. What is no image, or is too large for a page, is left out, with a line that says so.
func readImages(root *os.Root) (images []Image, notes []string, err error) {
	var names []string
	for _, pattern := range []string{"*.png", "*/*.png"} {
		found, err := fs.Glob(root.FS(), "pictures/"+pattern)
		if err != nil {
			return nil, nil, fmt.Errorf("listing the pictures: %w", err)
		}
		names = append(names, found...)
	}
	room := allImageBytes
	for _, name := range names {
		p, err := readImage(root, name)
		switch {
		case err != nil:
			notes = append(notes, err.Error())
		case len(images) == mostImages || len(p.PNG) > room:
			notes = append(notes, fmt.Sprintf("%s is left out of the report, which holds at most %d images and %s of them", name, mostImages, Mebibytes(allImageBytes)))
		default:
			room -= len(p.PNG)
			images = append(images, p)
		}
	}
	return images, notes, nil
}

func readImage(root *os.Root, name string) (Image, error) {
	info, err := root.Stat(name)
	if err != nil {
		return Image{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if info.Size() > mostImageBytes {
		return Image{}, fmt.Errorf("%s is left out of the report: it has %s, more than %s", name, Mebibytes(info.Size()), Mebibytes(mostImageBytes))
	}
	p := Image{}
	if p.PNG, err = root.ReadFile(name); err != nil {
		return Image{}, fmt.Errorf("reading %s: %w", name, err)
	}
	header, err := png.DecodeConfig(bytes.NewReader(p.PNG))
	if err != nil {
		return Image{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if p.Width, p.Height = header.Width, header.Height; p.Width*p.Height > mostPixels {
		return Image{}, fmt.Errorf("%s is left out of the report: %d x %d pixels are too many", name, p.Width, p.Height)
	}
	text, err := root.ReadFile(strings.TrimSuffix(name, ".png") + ".json")
	if err == nil {
		err = json.Unmarshal(text, &p.ImageText)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Image{}, fmt.Errorf("reading the caption of %s: %w", name, err)
	}
	if p.Title == "" {
		p.Title = strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(name), "pictures/"), ".png")
	}
	return p, nil
}
