"""What verbs and the console ask for and do: SQL behind people's acts."""
