package main

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/dataset"
)

// imageFilesCommand lists a folder for the Python package, so that classes are found by one rule.
func imageFilesCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "image-files FOLDER",
		Short:  "Print the images of a folder and their labels, in JSON",
		Args:   usageArgs(cobra.ExactArgs(1)),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			folder, err := dataset.OpenFolder(c.Context(), dataset.FolderOptions{Dir: args[0]})
			if err != nil {
				return err
			}
			defer dataset.Close(folder) // data are only read
			list := imageFiles{Classes: folder.Classes(), Notes: folder.Notes()}
			for i := range folder.Len() {
				s := folder.Describe(i)
				list.Files = append(list.Files, imageFile{s.Name, s.Label})
			}
			return json.NewEncoder(os.Stdout).Encode(list)
		},
	}
}

type imageFiles struct {
	Files   []imageFile `json:"files"`
	Classes []string    `json:"classes"` // nil: the files have no labels
	Notes   []string    `json:"notes"`   // on what was left out
}

type imageFile struct {
	File  string `json:"file"`  // relative to the folder
	Label int    `json:"label"` // index of the class, or -1
}
