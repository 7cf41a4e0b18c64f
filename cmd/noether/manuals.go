package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/noether-ml/noether/internal/release"
)

// manualsCommand writes the manual pages and shell completions that packages install.
func manualsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "manuals DIR",
		Short:  "Write the manual pages and shell completions in the layout of /usr/share",
		Args:   usageArgs(cobra.ExactArgs(1)),
		Hidden: true,
		RunE:   func(c *cobra.Command, args []string) error { return writeManuals(c.Root(), args[0]) },
	}
}

func writeManuals(root *cobra.Command, dir string) error {
	root.DisableAutoGenTag = true
	pages := filepath.Join(dir, "man", "man1")
	if err := os.MkdirAll(pages, 0o777); err != nil {
		return err
	}
	epoch := time.Unix(0, 0).UTC() // the same program writes the same pages
	header := &doc.GenManHeader{Section: "1", Source: "noether " + release.Version, Manual: "Noether", Date: &epoch}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return err
	}
	for name, generate := range map[string]func(io.Writer) error{
		"bash-completion/completions/noether":    func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh/site-functions/_noether":            root.GenZshCompletion,
		"fish/vendor_completions.d/noether.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
	} {
		var text bytes.Buffer
		if err := generate(&text); err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, text.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return nil
}
