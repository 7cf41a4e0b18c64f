package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Model returns the path of a model's file, with its external weight files in the same folder.
// These are downloaded from the folder of the model's URL; external lists them, given the model's
// file. sum is the SHA-256 of the model's file if it has no external files. Otherwise sum covers
// all files and is verified when the model is opened, as for models of hf://.
func (c *Cache) Model(ctx context.Context, address, sum string, external func(file string) ([]string, error)) (string, error) {
	if IsHub(address) {
		return c.hubModel(ctx, address, external)
	}
	t, err := parse(address, sum)
	if err != nil {
		return "", err
	}
	if t.sha256 != "" && c.has(t.sha256) {
		if file, err := c.named(t.sha256, t.name); err != nil || len(mustList(external, file)) == 0 {
			return file, err
		}
	}
	loose := t
	loose.sha256 = ""
	main, err := c.content(ctx, loose)
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.text, err)
	}
	file, err := c.named(main, t.name)
	if err != nil {
		return "", err
	}
	names, err := external(file)
	if err != nil && t.sha256 != "" && main != t.sha256 { // a file that is not a model has no external files
		err = otherHash(main, t.sha256)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.text, err)
	}
	if len(names) == 0 {
		if t.sha256 != "" && main != t.sha256 {
			return "", fmt.Errorf("%s: %w", t.text, otherHash(main, t.sha256))
		}
		return file, nil
	}
	return c.bundle(ctx, t, main, names)
}

func otherHash(got, want string) error {
	return fmt.Errorf("has the SHA-256 %s, not %s: it is a different file, or damaged", got, want)
}

// mustList lists the external files, or none if the model cannot be read.
func mustList(external func(string) ([]string, error), file string) []string {
	names, err := external(file)
	if err != nil {
		return nil // the error appears when the model is opened
	}
	return names
}

// bundle makes a folder with a model and its external files under the names in the model.
func (c *Cache) bundle(ctx context.Context, t target, main string, names []string) (string, error) {
	files := map[string]string{t.name: main}
	about := sha256.New()
	for _, name := range names {
		if !filepath.IsLocal(filepath.FromSlash(name)) || strings.Contains(name, "\\") || name == t.name {
			return "", fmt.Errorf("%s keeps weights in %q, outside its folder", t.text, name)
		}
		u := *t.url
		u.Path = path.Join(path.Dir(u.Path), name)
		u.RawPath = ""
		one := target{url: &u, text: Redact(u.String()), name: path.Base(name)}
		sum, err := c.content(ctx, one)
		if err != nil {
			return "", fmt.Errorf("%s: %w", one.text, err)
		}
		files[name] = sum
		fmt.Fprintf(about, "%s %s\n", sum, name)
	}
	dir := c.path("content", main, "with-"+hex.EncodeToString(about.Sum(nil)[:8]))
	for name, sum := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return "", err
		}
		if err := c.provide(sum, to); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, t.name), nil
}
