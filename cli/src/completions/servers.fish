# Paths come from the servers, and what is behind -- is a command line of its own.
function __lockkeeper_expects_path
    set -l words (commandline -opc)
    set -g __lockkeeper_found (command lockkeeper __paths $words (commandline -ct) 2>/dev/null)
end

function __lockkeeper_expects_program
    contains -- -- (commandline -opc)
end

function __lockkeeper_program
    set -l words (commandline -opc)
    set -l behind $words[(math (contains -i -- -- $words) + 1)..-1]
    complete -C (string join ' ' -- (string escape -- $behind) (commandline -ct))
end

complete -c lockkeeper -n __lockkeeper_expects_path -f -a '$__lockkeeper_found'
complete -c lockkeeper -n __lockkeeper_expects_program -f -a '(__lockkeeper_program)'
